"""What the gates compare a step with, on a small decoder; and that a decoder that decodes wrongly fails the gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from onnx import helper

from contracts.verdicts import Status, Verdict
from converters.qwen3 import evidence
from converters.qwen3.evidence import operators_verdict, runs_of
from converters.qwen3.opening import Opening
from converters.qwen3.step_engine import step_export
from converters.stages import Evidence
from gates.snr import compare
from models.qwen3 import step as step_module
from models.qwen3.step import Latent
from models.qwen3.step_cache import State
from models.qwen3.step_layers import Rotation
from tests.converters.qwen3.openings import SMALL, open_small, weights_of, write_small
from tests.gates.small_graphs import proto, tensor
from tests.onnx_runs import snr_db
from tests.qwen3_reference import reference_decoder

RATE = 96


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("snapshot"))


@pytest.fixture(scope="module")
def opening(folder: Path) -> Opening:
    return open_small(folder, window_role="20+4")


def evidence_for(opening: Opening, role: str) -> Evidence:
    return step_export(opening, role).evidence()


def judged(found: Evidence) -> dict[str, Verdict]:
    """The verdicts of all that is compared, by gate."""
    compared = [compare(e.gate, e.reference, e.measured, e.minimum_db, e.detail) for e in found.equalities]
    return {verdict.gate: verdict for verdict in (*compared, *found.verdicts)}


def original(
    codes: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """What the reference's module decodes, in double precision."""
    made = reference_decoder(SMALL)
    weights = weights_of().items()
    made.load_state_dict({name.removeprefix("decoder."): torch.from_numpy(array) for name, array in weights})
    with torch.no_grad():
        return np.asarray(made.double()(torch.from_numpy(codes)).numpy())


@pytest.fixture(scope="module")
def main(opening: Opening) -> Evidence:
    return evidence_for(opening, "main")


def test_main_is_compared_stepwise_by_itself_and_behind_the_small_step(main: Evidence) -> None:
    verdicts = judged(main)
    assert list(verdicts) == [
        "host.latent",
        "fp32.stepwise",
        "fp32.stepwise_4_16",
        "fp32.export",
        "export.operators",
        "sine.reach",
    ]
    assert {verdict.status for verdict in verdicts.values()} == {Status.PASSED}
    assert [verdict.threshold for verdict in verdicts.values()] == [120, 90, 90, 100, 1150, 1]
    assert (
        "steps of 16 codes from a zeroed cache over 193 codes, 1 of 16 in the last step"
        in verdicts["fp32.stepwise"].detail
    )
    assert "a step of 4 codes and then steps of 16" in verdicts["fp32.stepwise_4_16"].detail


def test_what_is_owed_is_what_the_references_module_decodes(opening: Opening, main: Evidence) -> None:
    owed = {equality.gate: equality for equality in main.equalities}
    whole = original(opening.codes).reshape(-1)
    for gate in ("fp32.stepwise", "fp32.stepwise_4_16"):
        assert snr_db(whole, np.asarray(owed[gate].reference["audio"])) >= 110
        assert owed[gate].measured["audio"].shape == whole.shape


def test_first_is_compared_stepwise_by_itself(opening: Opening) -> None:
    verdicts = judged(evidence_for(opening, "first"))
    assert list(verdicts)[:3] == ["host.latent", "fp32.stepwise", "fp32.export"]
    assert "steps of 4 codes" in verdicts["fp32.stepwise"].detail
    assert verdicts["fp32.stepwise"].status is Status.PASSED


def test_events_are_compared_with_the_whole_decoder_on_the_same_codes(opening: Opening) -> None:
    """The first events have less context than 20 codes: they start with the stream."""
    found = evidence_for(opening, "window")
    verdicts = judged(found)
    assert "fp32.stepwise" not in verdicts
    assert verdicts["fp32.events"].status is Status.PASSED
    assert verdicts["fp32.events"].threshold == 90
    (events,) = (equality for equality in found.equalities if equality.gate == "fp32.events")
    owed = np.asarray(events.reference["audio"])
    assert len(owed) == RATE * opening.codes.shape[-1]
    for start in (0, 4, 40, 188):
        begin = max(0, start - 20)
        wanted = original(np.ascontiguousarray(opening.codes[..., begin : start + 4]))[0, 0, RATE * (start - begin) :]
        assert snr_db(wanted, owed[RATE * start : RATE * (start + 4)]) >= 110


def test_events_differ_from_the_streams_decode(opening: Opening) -> None:
    """What is older than the context is not heard: another quantity than the one of the steps."""
    (events,) = (e for e in evidence_for(opening, "window").equalities if e.gate == "fp32.events")
    assert snr_db(opening.whole[0].reshape(-1), np.asarray(events.reference["audio"])) < 80


@pytest.mark.parametrize("role", ["main", "first"])
def test_runs_are_a_step_in_midstream_and_a_partly_empty_one_at_its_start(role: str, opening: Opening) -> None:
    size = {"main": 16, "first": 4}[role]
    going_on, starting = runs_of(opening, role)
    whole = original(opening.codes)
    np.testing.assert_array_equal(going_on.feed["hidden"][:, :, 0], opening.hidden[..., 4 : 4 + size])
    assert going_on.feed["cache"].any()
    assert snr_db(whole[..., 4 * RATE : (4 + size) * RATE], np.asarray(going_on.owed["audio"])) >= 110
    valid = size - size // 4
    assert not starting.feed["cache"].any()
    np.testing.assert_array_equal(starting.feed["hidden"][:, :, 0, :valid], opening.hidden[..., :valid])
    assert not starting.feed["hidden"][..., valid:].any()
    assert snr_db(whole[..., : valid * RATE], np.asarray(starting.owed["audio"])) >= 110
    assert starting.owed["cache_out"].shape == starting.feed["cache"].shape


def test_events_full_step_stands_at_a_streams_start(opening: Opening) -> None:
    full, partly = runs_of(opening, "window")
    assert not full.feed["cache"].any()
    assert not partly.feed["cache"].any()
    wanted = original(np.ascontiguousarray(opening.codes[..., 24:48]))
    np.testing.assert_array_equal(full.feed["hidden"][:, :, 0], opening.hidden[..., 24:48])
    assert snr_db(wanted, np.asarray(full.owed["audio"])) >= 110


def test_finished_graph_is_expected_to_give_both_runs(main: Evidence, opening: Opening) -> None:
    (expected,) = main.expectations
    assert (expected.gate, len(expected.runs)) == ("fp32.finished", 2)
    assert expected.minimum_db == evidence.FINISHED_DB[opening.geometry.form] >= 85
    assert set(expected.runs[0][1]) == {"audio", "cache_out"}


def test_host_is_not_compared_where_the_engine_takes_codes(folder: Path) -> None:
    verdicts = judged(evidence_for(open_small(folder, codes="4", seam="codes"), "main"))
    assert list(verdicts)[:2] == ["fp32.stepwise", "fp32.export"]
    assert {verdict.status for verdict in verdicts.values()} == {Status.PASSED}


def test_operators_are_counted_without_constants_and_those_taken_apart_are_named() -> None:
    nodes = [helper.make_node("Constant", [], [f"c{n}"], value_float=1.0) for n in range(5)]
    nodes += [helper.make_node("Exp", ["x" if not n else f"e{n - 1}"], [f"e{n}"]) for n in range(1150)]
    graph = ir.from_proto(proto(nodes, [tensor("x", [1])], [tensor("e1149", [1])], []))
    verdict = operators_verdict(graph)
    assert (verdict.measured, verdict.threshold, verdict.status) == (1150, 1150, Status.PASSED)
    assert "0 Pad, 1150 Exp, 0 Shape, 0 ConstantOfShape" in verdict.detail
    nodes.append(helper.make_node("Exp", ["e1149"], ["more"]))
    more = ir.from_proto(proto(nodes, [tensor("x", [1])], [tensor("more", [1])], []))
    assert operators_verdict(more).status is Status.FAILED


# Decoders that decode wrongly.


def tail_dropped(patch: pytest.MonkeyPatch) -> None:
    """The second upsampling block's convolution sees zeros in place of its past."""
    right = step_module._continued

    def continued(x: torch.Tensor, name: str, old: State, new: State) -> torch.Tensor:
        return right(x, name, {**old, "upsample.1": old["upsample.1"] * 0}, new)

    patch.setattr(step_module, "_continued", continued)


def window_too_narrow(patch: pytest.MonkeyPatch) -> None:
    """Attention sees one code less of the past than the window has."""
    right = Latent.__init__

    def made(self: Latent, *given: object) -> None:
        right(self, *given)  # type: ignore[arg-type]
        for query in range(self.codes):
            self.unseen[0, query, 0, query] = -1e4

    patch.setattr(Latent, "__init__", made)


def all_valid(patch: pytest.MonkeyPatch) -> None:
    """Attention sees what there was not before the start: zeros."""
    right = Latent._mask

    def mask(self: Latent, valid: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return right(self, torch.ones_like(valid))

    patch.setattr(Latent, "_mask", mask)


def off_by_one(patch: pytest.MonkeyPatch) -> None:
    """Queries are turned by the slot behind theirs."""
    patch.setattr(
        step_module,
        "Rotation",
        lambda slots, size, theta: Rotation(
            range(slots.start + (slots.start > 0), slots.stop + (slots.start > 0)), size, theta
        ),
    )


@pytest.mark.parametrize("wrong", [tail_dropped, window_too_narrow, all_valid, off_by_one])
def test_step_that_decodes_wrongly_fails_stepwise_and_not_against_its_own_module(
    wrong: Callable[[pytest.MonkeyPatch], None], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph does what its module does; the module is wrong."""
    wrong(monkeypatch)
    opening = open_small(folder, codes="8")
    verdicts = judged(evidence_for(opening, "main"))
    assert verdicts["fp32.stepwise"].status is Status.FAILED
    assert verdicts["fp32.export"].status is Status.PASSED


def test_graph_that_is_not_its_modules_fails_export(folder: Path) -> None:
    opening = open_small(folder, codes="8")
    model = opening.model(8)
    tables = [value for value in model.graph.initializers.values() if "turns.0.sin" in str(value.name)]
    assert len(tables) == 1
    array = tables[0].const_value
    assert array is not None
    tables[0].const_value = ir.tensor(array.numpy() * np.float32(1.01), name=tables[0].name)
    verdicts = judged(evidence_for(opening, "main"))
    assert verdicts["fp32.export"].status is Status.FAILED
    assert verdicts["fp32.stepwise"].status is Status.FAILED
