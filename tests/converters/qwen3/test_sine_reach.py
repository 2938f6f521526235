from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from contracts.errors import Refusal
from contracts.verdicts import Status
from converters.qwen3.opening import Opening
from converters.qwen3.sine_reach import reach_verdicts, reaches_of, sine_cuts
from tests.converters.qwen3.openings import open_small, write_small


@pytest.fixture(scope="module")
def opening(tmp_path_factory: pytest.TempPathFactory) -> Opening:
    return open_small(write_small(tmp_path_factory.mktemp("snapshot")))


def of(*sites: list[float]) -> list[Any]:
    return [np.array(site, np.float32) for site in sites]


def seen(opening: Opening, *sites: list[float]) -> Opening:
    """The same, its sines having gone so far."""
    made = object.__new__(Opening)
    made.__dict__.update(opening.__dict__)
    made.__dict__["whole"] = (np.zeros((1, 1, 1), np.float32), of(*sites))
    return made


def test_reach_is_of_what_the_whole_decode_saw(opening: Opening) -> None:
    (found,) = reaches_of(seen(opening, [1.2, 0.5]))
    assert found.tolist() == pytest.approx([2.0, 1.0])


def test_reach_is_judged_where_sines_are_folded_only(opening: Opening, tmp_path: Path) -> None:
    reaches = reaches_of(opening)
    (verdict,) = reach_verdicts(opening, reaches)
    assert verdict.status is Status.PASSED
    assert 0.2 < float(verdict.measured or 0) < 1
    for form in ("floor", "exact", "clip"):
        assert reach_verdicts(open_small(write_small(tmp_path / form), sine=form), reaches) == ()


def test_other_codes_are_others(opening: Opening) -> None:
    assert not any(np.array_equal(one, other) for one, other in zip(opening.whole[1], opening.others, strict=True))


def test_every_sine_of_the_graph_has_its_modules_reach(opening: Opening) -> None:
    """7 of the first block, then 7 of the other and the last one, as body and as head."""
    reaches = [np.full(len(each), number + 1, np.float32) for number, each in enumerate(reaches_of(opening))]
    assert len(reaches) == 15
    model = opening.model(4)
    (made,) = sine_cuts(opening, model, reaches)("rk3588")
    assert made.name == "rewrite_sines"
    sines = [node for node in model.graph if node.op_type == "Sin"]
    assert len(sines) == 7 + 2 * 8
    # 64 channels before the first upsampling, 32 in its units; 32 before the second, 16 in its units and at the end.
    channels = [64, *[32] * 6, *[32, *[16] * 7] * 2]
    assert [node.outputs[0].shape[1] for node in sines if node.outputs[0].shape is not None] == channels


def test_graph_with_other_sines_than_the_modules_is_refused(opening: Opening) -> None:
    reaches = reaches_of(opening)
    with pytest.raises(Refusal, match="23 sines are not the 21 of its module, in order"):
        sine_cuts(opening, opening.model(4), reaches[:-1])
    with pytest.raises(Refusal, match="0 sines"):
        sine_cuts(opening, ir.Model(ir.Graph([], [], nodes=[]), ir_version=10), reaches)
