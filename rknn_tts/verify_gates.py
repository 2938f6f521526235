"""The verdicts of a manifest that only a board can give, each by a name of its own.

A gate may give several verdicts: `log.regtask` gives one a hardware field. In a probe's kit and result they are told
apart by the field's key, as `--accept-regtask` takes it: `log.regtask:v2:0x4038:0:0x1fff`.
"""

from __future__ import annotations

from contracts.errors import UserInput
from contracts.manifest import Manifest, RegtaskCount
from contracts.verdicts import Status

REGTASK_GATE = "log.regtask"


def unproven_places(manifest: Manifest) -> dict[str, int]:
    """Where in `manifest.verdicts` the unproven ones stand, by name.

    Raises:
        UserInput: the manifest's REGTASK verdicts are not those of the fields in its log.
    """
    places = verdict_places(manifest)
    return {name: at for name, at in places.items() if manifest.verdicts[at].status is Status.UNPROVEN}


def verdict_places(manifest: Manifest) -> dict[str, int]:
    """Where in `manifest.verdicts` each stands, by name; of several of one name the first.

    Raises:
        UserInput: as of `unproven_places`.
    """
    regtask = _regtask_names(manifest)
    places: dict[str, int] = {}
    for place, verdict in enumerate(manifest.verdicts):
        places.setdefault(regtask.get(place, verdict.gate), place)
    return places


def regtask_name(field: RegtaskCount) -> str:
    """The name of the verdict on one hardware field."""
    return f"{REGTASK_GATE}:{field.target}:{field.offset}:{field.shift}:{field.limit}"


def _regtask_names(manifest: Manifest) -> dict[int, str]:
    """Place to name of the verdicts on hardware fields; they stand in the order of `log.regtask` in the manifest."""
    if not manifest.log.regtask:
        return {}
    places = [place for place, verdict in enumerate(manifest.verdicts) if verdict.gate == REGTASK_GATE]
    if len(places) != len(manifest.log.regtask):
        raise UserInput(
            f"{manifest.engine.file}: its manifest has {len(places)} verdicts on {len(manifest.log.regtask)} REGTASK "
            "fields; build the engine again."
        )
    return {place: regtask_name(field) for place, field in zip(places, manifest.log.regtask, strict=True)}
