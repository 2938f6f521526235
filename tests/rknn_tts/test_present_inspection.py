"""What is shown of an inspected file; the files themselves are in test_inspection.py."""

from __future__ import annotations

import pytest

from cost.table import CostRow
from rknn_tts.blocks import plain_text
from rknn_tts.engine_file import EngineHeader
from rknn_tts.inspection import Inspection, OnnxFacts, OnnxTensor
from rknn_tts.present_inspection import inspection_blocks
from tests.contracts.samples import CONTRACT
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
    shown = lines(cost=(CostRow("Conv (NPU)", 3, 2_500_000, 1500.0, 1.234),))
    assert shown[-1] == "Conv (NPU) 3 2.50 1.5 MB 1.23"


def test_notes_come_as_warnings_and_control_characters_as_text() -> None:
    shown = lines(notes=("It is stale.",), members=("a\x1b[31m.rknn",))
    assert "member: a\\x1b[31m.rknn" in shown
    assert shown[-1] == "note: It is stale."
