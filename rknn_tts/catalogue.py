"""`rknn-tts catalogue`: what a farm's output folder, or any folder of engines, holds, as a JSON and a page."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from contracts.errors import EXIT_DONE, UserInput
from contracts.files import write_all_whole
from farm.catalogue import SCHEMA, Catalogue, Fault, exit_code_of
from farm.catalogue_diff import Changes, changes_since
from farm.catalogue_file import catalogue_bytes, read_catalogue
from farm.catalogue_page import is_page, page_html
from farm.gathering import assembled, gather_farm
from farm.places import FarmPlaces
from farm.plain_folder import gather_folder
from rknn_tts.places import make_folder
from rknn_tts.progress import Say
from rknn_tts.report import NOTHING, Report
from rknn_tts.request import Request

CATALOGUE, CHANGES = "catalogue", "changes"
"""Keys of `Report.extra`."""

_ELSEWHERE = "move it, or make the catalogue of another folder"

_SCHEMA_WITHIN_BYTES = 200
"""A catalogue begins with its schema."""


@dataclass(frozen=True)
class Catalogued:
    """A catalogue that was written.

    Attributes:
        catalogue: what there is.
        changes: what changed since the earlier one; None where none was named.
        files: the JSON and the page.
    """

    catalogue: Catalogue
    changes: Changes | None
    files: tuple[Path, Path]


def catalogue(request: Request, say: Say) -> Report:
    """Write the catalogue of `request.folder`.

    Raises:
        UserInput: there is no such folder, nothing in it, or something that would be replaced; or what the catalogue is
            to be compared with cannot be read.
    """
    assert request.folder is not None
    done = catalogue_folder(Path(request.folder), Path(request.against) if request.against else None, say)
    outcome = replace(NOTHING, files=tuple(map(str, done.files)))
    found = done.catalogue
    return Report(request, exit_code_of(found), fault_of(found), outcome, extra=extra_of(done))


def catalogue_folder(folder: Path, against: Path | None, say: Say) -> Catalogued:
    """Write the catalogue of `folder`, compared with the earlier one at `against`.

    Raises:
        UserInput: as of `catalogue`.
        OSError: a file cannot be written.
    """
    if not folder.is_dir():
        raise UserInput(f"{folder}: there is no such folder; name a farm's output folder, or one of engines.")
    earlier = read_catalogue(against) if against is not None else None
    places = FarmPlaces(folder)
    check_replaced(places)
    make_folder(folder, _ELSEWHERE)
    say.step("reading what was built")
    found = gather_farm(places) if os.path.lexists(places.plan) else assembled(None, *gather_folder(folder))
    changes = None if earlier is None or against is None else changes_since(earlier, found, _label(against, folder))
    say.step("writing the catalogue")
    more = {} if changes is None else {CHANGES: changes}
    files = ((places.catalogue, catalogue_bytes(found, **more)), (places.page, page_html(found, changes)))
    write_all_whole(files)
    return Catalogued(found, changes, (places.catalogue, places.page))


def fault_of(found: Catalogue) -> str | None:
    """What is wrong with what the catalogue holds, as one sentence; None where nothing is."""
    if exit_code_of(found) == EXIT_DONE:
        return None
    faults = [failure.fault for failure in found.failures]
    refused, waiting = faults.count(Fault.REFUSED), faults.count(Fault.WAITING)
    counts = {
        "failed": len(faults) - refused - waiting,
        "refused": refused,
        "left out": len(found.unplanned),
        "waited for what failed": waiting,
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"Not everything is as it should be: {told}; the rest is done."


def extra_of(done: Catalogued) -> dict[str, object]:
    """What a report says of a catalogue."""
    return {CATALOGUE: done.catalogue, **({} if done.changes is None else {CHANGES: done.changes})}


def check_replaced(places: FarmPlaces) -> None:
    """See that nothing but an earlier catalogue is replaced there.

    Raises:
        UserInput: something else stands in the place of one of its files.
    """
    _check_replaced(places.catalogue, _is_catalogue)
    _check_replaced(places.page, is_page)


def _label(against: Path, folder: Path) -> str:
    """The earlier catalogue as seen from `folder`: the same wherever both stand."""
    return Path(os.path.relpath(against, folder)).as_posix()


def _check_replaced(place: Path, is_ours: Callable[[Path], bool]) -> None:
    """See that nothing but an earlier catalogue is replaced."""
    if not os.path.lexists(place):
        return
    try:
        ours = place.is_file() and is_ours(place)
    except OSError as error:
        raise UserInput(f"{place}: cannot be read ({error.strerror}); {_ELSEWHERE}.") from error
    if not ours:
        raise UserInput(f"{place}: is no catalogue of rknn-tts, and would be replaced; {_ELSEWHERE}.")


def _is_catalogue(path: Path) -> bool:
    with path.open("rb") as file:
        return SCHEMA.encode() in file.read(_SCHEMA_WITHIN_BYTES)
