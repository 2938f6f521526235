from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from contracts.errors import Refusal
from contracts.verdicts import Status
from converters.qwen3.opening import Opening
from converters.qwen3.sine_reach import reach_verdict, reach_verdicts, reaches_of, sine_cuts
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


def test_reach_is_what_was_seen_with_a_margin_for_each_channel_and_one_for_the_site(opening: Opening) -> None:
    """Channels: twice. The site: a power of two from one and a half times its largest on."""
    (found,) = reaches_of(seen(opening, [1.2, 0.5, 0.01, 0.0]))
    # 1.5 * 1.2 = 1.8, so the site is right up to 2: the first channel's 2.4 is cut.
    assert found.tolist() == pytest.approx([2.0, 1.0, 0.1, 0.1])
    (wide,) = reaches_of(seen(opening, [1.4, 0.9]))
    assert wide.tolist() == pytest.approx([2.8, 1.8])  # 2.1: up to 4
    assert found.dtype == np.float32


def test_reach_verdict_is_of_the_worst_sine_by_the_range_that_is_covered() -> None:
    """A reach of 1.5 is covered up to 2, one of 0.2 up to 1."""
    verdict = reach_verdict(of([1.5, 0.2], [1.0]), of([1.0, 0.6], [0.3]))
    assert (verdict.gate, verdict.status) == ("sine.reach", Status.PASSED)
    assert verdict.measured == pytest.approx(0.6)
    assert "of 2 sines" in verdict.detail
    assert "(sine 0)" in verdict.detail
    beyond = reach_verdict(of([1.5, 0.2], [1.0]), of([1.0, 0.6], [1.01]))
    assert beyond.status is Status.FAILED
    assert beyond.measured == pytest.approx(1.01)
    assert "(sine 1)" in beyond.detail


def test_reach_verdict_fails_what_is_not_a_number() -> None:
    verdict = reach_verdict(of([1.0]), of([float("nan")]))
    assert verdict.status is Status.FAILED


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
