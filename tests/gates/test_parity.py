"""Parity of two graphs: the worst feed counts, and a graph that does not run fails."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from contracts.errors import RknnTtsError
from contracts.verdicts import Status
from gates.parity import parity, parity_db
from gates.session import Session
from tests.gates.small_graphs import constant, proto, row, scale_proto, tensor

FEED = {"x": row(1, 2, 3, 4)}


def clipped_proto() -> onnx.ModelProto:
    """Equal to 1 * x where x is at most 4."""
    node = helper.make_node("Min", ["x", "k"], ["y"], "clip")
    return proto([node], [tensor("x", [1, 4])], [tensor("y", [1, 4])], [constant("k", [4.0])])


def test_parity_passes_with_inf_when_graphs_are_equal() -> None:
    verdict = parity("parity.x", scale_proto(2.0), scale_proto(2.0), [FEED], 120.0)
    assert (verdict.gate, verdict.status, verdict.measured) == ("parity.x", Status.PASSED, math.inf)
    assert parity_db(scale_proto(2.0), scale_proto(2.0), [FEED]) == math.inf


def test_parity_fails_with_the_ratio_when_graphs_differ() -> None:
    verdict = parity("g", scale_proto(2.0), scale_proto(2.002), [FEED], 120.0)
    assert verdict.status is Status.FAILED
    assert verdict.measured == pytest.approx(60.0, abs=0.01)
    assert "1.001 times the reference" in verdict.detail


def test_parity_counts_the_worst_feed_when_only_one_differs() -> None:
    feeds = [FEED, {"x": row(1, 2, 3, 8)}, FEED]
    verdict = parity("g", scale_proto(1.0), clipped_proto(), feeds, 95.0)
    assert verdict.status is Status.FAILED
    assert "feed 2, output 'y'" in verdict.detail
    # x = (1, 2, 3, 8) against (1, 2, 3, 4): 78 of signal, 16 of noise.
    assert parity_db(scale_proto(1.0), clipped_proto(), feeds) == pytest.approx(10 * math.log10(78 / 16), abs=1e-6)


def test_parity_takes_sessions_when_graphs_are_loaded_already() -> None:
    assert parity_db(Session(scale_proto(1.0)), Session(clipped_proto()), [FEED]) == math.inf


def test_parity_fails_when_there_are_no_feeds() -> None:
    verdict = parity("g", scale_proto(1.0), scale_proto(1.0), [], 95.0)
    assert verdict.status is Status.FAILED
    assert "nothing to compare" in verdict.detail
    assert math.isnan(parity_db(scale_proto(1.0), scale_proto(1.0), []))


@pytest.mark.parametrize(
    ("feed", "reason"), [({"q": FEED["x"]}, "there is no input 'q'"), ({"x": np.ones((1, 5), np.float32)}, "[1, 4]")]
)
def test_parity_fails_with_reason_when_a_graph_does_not_run(feed: dict[str, NDArray[np.float32]], reason: str) -> None:
    verdict = parity("g", scale_proto(1.0), scale_proto(1.0), [feed], 95.0)
    assert verdict.status is Status.FAILED
    assert "it could not run" in verdict.detail
    assert reason in verdict.detail
    with pytest.raises(RknnTtsError):
        parity_db(scale_proto(1.0), scale_proto(1.0), [feed])


def test_parity_fails_when_the_rewrite_does_not_load() -> None:
    verdict = parity("g", scale_proto(1.0), b"broken", [FEED], 95.0)
    assert verdict.status is Status.FAILED
    assert "onnxruntime cannot load it" in verdict.detail


def test_parity_fails_when_the_rewrite_renames_an_output() -> None:
    renamed = scale_proto(1.0)
    renamed.graph.node[0].output[0] = renamed.graph.output[0].name = "other"
    verdict = parity("g", scale_proto(1.0), renamed, [FEED], 95.0)
    assert verdict.status is Status.FAILED
    assert "no output named y (there are: other)" in verdict.detail
