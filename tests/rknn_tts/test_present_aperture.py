"""What a person sees of the NPU's address space."""

from __future__ import annotations

from contracts.manifest import Aperture, SharedAperture
from cost.aperture import MIB, sharing
from rknn_tts.blocks import plain_text
from rknn_tts.present_aperture import aperture_text, together_blocks

RUNGS = {"flow-s110.json": 786 * MIB, "flow-s200.json": 1129 * MIB, "flow-s400.json": 2615 * MIB}


def told(shared: SharedAperture) -> list[str]:
    return [" ".join(line.split()) for line in plain_text(together_blocks(shared)).splitlines() if line.strip()]


def test_aperture_text_says_that_it_is_an_estimate() -> None:
    text = aperture_text(Aperture(1129 * MIB, 660 * MIB))
    assert text == ("1129 of 3900 MiB that a process can load, 660 in one mapping (estimated, not measured on a board)")


def test_sets_are_listed_with_what_they_take() -> None:
    # 786 + 1129 + 2615 = 4530 do not fit; 786 + 2615 and 1129 + 2615 do, and so do 786 + 1129.
    lines = told(sharing(RUNGS))
    assert lines[0] == "engines MiB of 3900"
    assert set(lines[1:]) == {"flow-s110, flow-s200 1915", "flow-s110, flow-s400 3401", "flow-s200, flow-s400 3744"}


def test_engine_that_does_not_fit_by_itself_is_named() -> None:
    lines = told(sharing({**RUNGS, "flow-s900.json": 5135 * MIB}))
    assert lines[-1] == "note: Larger than the 3900 MiB of a process by itself: flow-s900 (5135 MiB)."
    assert told(sharing({"flow-s900.json": 5135 * MIB})) == [lines[-1]]


def test_only_the_first_sets_are_shown() -> None:
    # Of five of 1300 MiB any three fit: ten sets.
    lines = told(sharing({f"r{number}.json": 1300 * MIB for number in range(5)}))
    assert len(lines) == 1 + 8 + 1
    assert lines[-1] == "note: 2 more sets fit (--json has all of them)."


def test_sets_that_were_not_listed_are_summed() -> None:
    lines = told(sharing({f"r{number}.json": 1000 * MIB for number in range(13)}))
    assert lines == ["note: They do not all fit into one process: 13000 MiB of 3900."]


def test_set_of_nothing_and_of_names_that_it_does_not_tell_of_is_no_fault() -> None:
    assert told(sharing({})) == []
    assert told(SharedAperture(3900 * MIB, {}, (("x.json",),))) == ["engines MiB of 3900", "x 0"]
