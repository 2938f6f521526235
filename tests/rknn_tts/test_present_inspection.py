"""What is shown of an inspected file; the files themselves are in test_inspection.py."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rknn_tts_runtime.engine_file import EngineHeader

from contracts.contract import PassRecord, short_contract
from cost.table import CostRow, LayerCost, cpu_layers_of_sums
from rknn_tts.blocks import plain_text
from rknn_tts.inspection import Inspection, OnnxFacts, OnnxTensor
from rknn_tts.present_inspection import inspection_blocks
from tests.contracts.samples import CONTRACT, STEP, STEP_CONTRACT
from tests.rknn_tts.samples import MANIFEST

SHA = "0123456789abcdef" * 4


def lines(**found: object) -> list[str]:
    """What is shown, blanks between columns as one."""
    facts = {"file": "a.rknn", "kind": "engine", "bytes": 1_500_000, "sha256": SHA, **found}
    text = plain_text(inspection_blocks(Inspection(**facts)))  # type: ignore[arg-type] # a table of differences
    return [" ".join(line.split()) for line in text.splitlines()]


def facts(**more: object) -> OnnxFacts:
    tensors = (OnnxTensor("x", ("N", 4), "float32"),)
    given = {
        "ir_version": 8, "opsets": {"": 17, "com.microsoft": 1}, "nodes": 3, "operators": {"Add": 2, "Mul": 1},
        "inputs": tensors, "outputs": (), "parameters": 12, "contract": None, **more,
    }  # fmt: skip
    return OnnxFacts(**given)  # type: ignore[arg-type] # a table of differences


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("engine", "RKNN engine"),
        ("manifest", "manifest of an engine"),
        ("set", "manifest of a set"),
        ("layers", "layer table of a build"),
        ("onnx", "ONNX model"),
    ],
)
def test_file_is_told_with_kind_size_and_digest(kind: str, word: str) -> None:
    shown = lines(kind=kind)
    assert shown[:2] == ["file: a.rknn", f"kind: {word}, 1.5 MB, sha256 0123456789abcdef"]


def test_engine_of_others_is_told_as_one() -> None:
    shown = lines(engine=EngineHeader((), None, (), None, 0, ()))
    assert "target: unknown" in shown
    assert "contract: none: it was not built by rknn-tts" in shown


def test_onnx_is_told_with_its_opsets_operators_and_symbolic_sizes() -> None:
    shown = lines(kind="onnx", onnx=facts())
    for line in ("opset: ai.onnx 17, com.microsoft 1 (IR 8)", "nodes: 3", "parameters: 12", "Add 2", "Mul 1"):
        assert line in shown
    assert "input x [N, 4] float32" in shown


def test_exported_onnx_is_told_with_what_was_proven() -> None:
    shown = lines(kind="onnx", onnx=facts(contract=CONTRACT))
    assert "stage: piper decoder" in shown
    assert "host half: piper-host.onnx" in shown
    assert "fold_flip 4 exact inf" in shown
    assert "mask_decoder 3 bounded -" in shown
    assert any(line.startswith("passed fp32.whole 101.5 95 dB one") for line in shown)


def test_manifest_has_the_tensors_and_its_verdicts_that_only_a_board_proves() -> None:
    shown = lines(kind="manifest", manifest=MANIFEST)
    assert "input z [1, 192, 109] float32" in shown
    assert shown[-1].startswith("UNPROVEN: log.regtask: ")


def test_cost_is_told_in_readable_units() -> None:
    row = CostRow("Conv (NPU)", 3, 2_500_000, 1500.0, 12.345)
    shown = lines(
        cost=(row, CostRow("Add (NPU)", 1, 0, 0.4, 0.00008)),
        targets=(replace(row, name="NPU"),),
        dearest=(LayerCost("ConvAdd", "NPU", "Conv:/dec/a:b", 500_000, 900.0, 0.68),),
        cpu=(LayerCost("Sin", "CPU", "Sin:/dec/sin", 0, 1000.0, 5.2), LayerCost("Sin", "CPU", "", 0, 40.0, 0.208)),
    )
    assert shown[shown.index("operator layers megacycles traffic ms") :] == [
        "operator layers megacycles traffic ms",
        "Conv (NPU) 3 2.50 1.5 MB 12.35",
        "Add (NPU) 1 0.00 400 bytes 0.00",
        "",
        "target layers megacycles traffic ms",
        "NPU 3 2.50 1.5 MB 12.35",
        "",
        "dearest layers megacycles traffic ms node",
        "ConvAdd (NPU) 0.50 900.0 KB 0.6800 /dec/a:b",
        "",
        "on the CPU traffic ms node",
        "Sin 1.0 MB 5.200 /dec/sin",
        "Sin 40.0 KB 0.208 (no name)",
    ]


def test_layers_on_the_cpu_are_all_in_the_table_and_none_in_the_summary() -> None:
    assert MANIFEST.layers is not None
    shown = lines(manifest=MANIFEST, layers=MANIFEST.layers, cpu=cpu_layers_of_sums(MANIFEST.layers.cpu))
    assert "layers: 236, 6 of them on the CPU" in shown
    assert "work: 8.3 megacycles, 85.2 MB of traffic" in shown
    assert [line for line in shown if line.startswith("on the CPU:")] == []
    assert len([line for line in shown if line.startswith("Slice 40.0 KB 0.2080 /flow/flows.")]) == 6


def test_layer_table_alone_is_told_with_its_sums() -> None:
    shown = lines(kind="layers", layers=MANIFEST.layers)
    assert "kind: layer table of a build, 1.5 MB, sha256 0123456789abcdef" in shown
    assert "time: 26.1 ms a run (modelled, not measured on a board)" in shown


def test_passes_that_found_nothing_are_counted_alone() -> None:
    passes = (PassRecord("fold_flip", 4, True, 130.0), PassRecord("a", 0, True), PassRecord("b", 0, False))
    shown = lines(manifest=replace(MANIFEST, passes=passes))
    assert "fold_flip 4 exact 130" in shown
    assert "passes: 2 others found nothing to rewrite (--json names them)." in shown


def test_notes_come_as_warnings_and_control_characters_as_text() -> None:
    shown = lines(notes=("It is stale.",), members=("a\x1b[31m.rknn",))
    assert "member: a\\x1b[31m.rknn" in shown
    assert shown[-1] == "note: It is stale."


STEP_MANIFEST = replace(
    MANIFEST, window=None, step=STEP, cache=STEP_CONTRACT.cache, source=STEP_CONTRACT.source, role="window"
)
STEP_LINES = (
    "source: seeded random weights: a stand-in, not a voice, sha256 0123456789abcdef",
    "step: 37 codes = 25 + 12 (context, emitted), 1920 samples a code at 24000 Hz; sees 71 earlier, heads of 64",
    "cache: 1303424 numbers (5.2 MB): 1 keys, 1 values, 1 other",
)


def test_step_is_told_with_its_cache_and_what_its_weights_are() -> None:
    shown = lines(kind="manifest", manifest=STEP_MANIFEST)
    assert set(STEP_LINES) <= set(shown)
    # 12 of the 37 codes, 1920 / 24000 s each.
    assert "time: 26.1 ms a run for 960 ms of audio (modelled, not measured on a board)" in shown
    shown = lines(kind="onnx", onnx=facts(contract=STEP_CONTRACT))
    assert set(STEP_LINES) <= set(shown)


def test_engine_alone_tells_its_step_its_cache_and_that_it_is_a_stand_in() -> None:
    carried = json.loads(short_contract(STEP_CONTRACT, "rk3588", "2.3.2"))
    shown = lines(engine=EngineHeader(("rk3588",), "2.3.2", (), carried, 0, ()))
    assert "weights: seeded random weights: a stand-in, not a voice" in shown
    assert "step: 37, 1920, 24000, 12 (codes, samples a code, sample rate, emitted)" in shown
    assert "cache: 1303424 numbers" in shown
