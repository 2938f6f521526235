"""What a command came to, for the terminal, `--json` and `--junit` alike."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.manifest import Manifest, SharedAperture
from contracts.verdicts import Measurement, Verdict


@dataclass(frozen=True)
class Outcome:
    """The end of a command that builds or exports.

    Attributes:
        files: what was written (or found to be there already), the main file first, as paths for the user.
        manifest: the engine's manifest; None for `export`.
        verdicts: every gate's verdict.
        measurements: figures that decide nothing.
        notes: sentences for the user (where the checkpoint comes from, what is unproven).
        reused: names of the steps whose finished result was found.
        log: the kept build log; None for `export`.
        members: of engines that belong together, what each came to; all the rest is of all of them then.
        aperture: which of the members fit into one process together; None where that is not known.
        models: of `files`, those that `export` wrote for `compile` to take, the host half not among them.
    """

    files: tuple[str, ...]
    manifest: Manifest | None
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...]
    reused: tuple[str, ...]
    log: str | None = None
    members: tuple[Outcome, ...] = ()
    aperture: SharedAperture | None = None
    models: tuple[str, ...] = ()
