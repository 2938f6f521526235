from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import onnx
import pytest

from contracts.contract import Source
from contracts.errors import GateFailure, Refusal, UserInput
from contracts.files import sha256_of
from converters.piper.decoder import open_decoder
from converters.stages import Stage, StageOptions
from rknn_tts import checkpoint_to_onnx as module
from rknn_tts.checkpoint_to_onnx import Conversion, export_graph, open_conversion, prove_export
from rknn_tts.request import Request
from rknn_tts.steps import Steps, open_steps
from tests.rknn_tts.workshop import Heard
from tests.vits_writer.voice import write_voice

DECODER = Stage("piper", "decoder", "", None, frozenset({"window", "context", "decoder_mask"}), open_decoder)
BARE = Stage("bare", "net", "", None, frozenset(), open_decoder)


@pytest.fixture(autouse=True)
def stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAGES", (DECODER, BARE))


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    return open_steps(False, lambda text: pytest.fail(text))


def conversion(path: Path, **options: Any) -> Conversion:
    return open_conversion(Request(command="export", checkpoint=str(path), **options), None, Heard())


def test_conversion_takes_the_users_checkpoint_and_options(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    made = conversion(path, family="piper", window=93, context=24)
    assert made.stage is DECODER
    assert made.options == StageOptions(window=93, context=24)
    assert made.checkpoint.source == Source("voice.onnx", sha256_of(path), "checkpoint")


@pytest.mark.parametrize("name", ["n" * 200 + ".onnx", "a\nb.onnx", os.fsdecode(b"\xff.onnx")])
def test_conversion_refuses_a_checkpoint_whose_name_no_file_can_be_named_after(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(UserInput, match="rename it"):
        conversion(tmp_path / name, family="piper")


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"window": 93}, "--window"),
        ({"window": 0}, "--window"),
        ({"context": 0}, "--context"),
        ({"decoder_mask": True}, "--decoder-mask"),
        ({"sample_rate": 22050}, "--sample-rate"),
    ],
)
def test_conversion_refuses_an_option_that_the_stage_does_not_have(
    tmp_path: Path, given: dict[str, Any], flag: str
) -> None:
    with pytest.raises(UserInput, match=rf"^bare net has no option {flag}\.$"):
        conversion(write_voice(tmp_path / "voice.onnx"), family="bare", **given)


def test_conversion_needs_a_checkpoint_where_there_is_no_default() -> None:
    with pytest.raises(UserInput, match="bare net has no default one: --checkpoint FILE"):
        open_conversion(Request(command="export", family="bare"), None, Heard())


def test_conversion_lists_the_families_when_none_is_named() -> None:
    with pytest.raises(UserInput, match=r"Which family\? There are: piper, bare"):
        open_conversion(Request(command="export"), None, Heard())


def _parts(path: Path, **options: Any) -> dict[str, str]:
    return conversion(path, family="piper", **options).parts


def test_export_depends_on_everything_that_belongs_to_it(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    config = tmp_path / "voice.onnx.json"
    before = _parts(path)
    assert _parts(path) == before
    assert _parts(path, window=93, context=24) != before
    assert _parts(path, decoder_mask=True) != before
    (tmp_path / "other.onnx.json").write_text("{}")
    assert _parts(path) == before
    text = config.read_text(encoding="utf-8")
    config.write_text(text + " ", encoding="utf-8")
    assert _parts(path) != before
    config.write_text(text, encoding="utf-8")
    assert _parts(path) == before
    config.unlink()
    assert _parts(path) != before


def test_export_depends_on_its_files_by_name_when_that_holds_patterns(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice[1]*.onnx")
    before = _parts(path)
    (tmp_path / "voice[1]*.onnx.json").write_text("{}")
    assert _parts(path) != before


def test_export_is_opened_once_for_graph_and_proof_and_not_at_all_when_found(tmp_path: Path, steps: Steps) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    first, said = Heard(), Heard()
    made = open_conversion(Request(command="export", family="piper", checkpoint=str(path)), None, first)
    exported = export_graph(made, steps)
    proof = prove_export(made, exported, steps)
    assert first.steps == [
        "opening voice.onnx",
        "rewriting the graph for the NPU",
        "comparing with the full-length decode",
    ]
    again = open_conversion(Request(command="export", family="piper", checkpoint=str(path)), None, said)
    assert export_graph(again, steps) == exported
    assert prove_export(again, exported, steps) == proof
    assert said.steps == []
    assert steps.reused == ["export", "prove"]


def test_proof_is_refused_when_the_graph_at_hand_is_another_one(tmp_path: Path, steps: Steps) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    made = conversion(path, family="piper")
    exported = export_graph(made, steps)
    graph = exported.folder / "model.onnx"
    graph.write_bytes(graph.read_bytes() + b"\x1a\x00")  # field 3, producer_version: the same graph to a reader
    with pytest.raises(GateFailure, match=r"voice\.onnx gives another graph now .* --force"):
        prove_export(made, exported, steps)


def test_proof_is_not_found_again_for_another_graph(tmp_path: Path, steps: Steps) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    made = conversion(path, family="piper")
    exported = export_graph(made, steps)
    prove_export(made, exported, steps)
    other = dataclasses.replace(exported, folder=tmp_path / "other")
    other.folder.mkdir()
    (other.folder / "model.onnx").write_bytes(b"another graph")
    with pytest.raises(GateFailure):
        prove_export(conversion(path, family="piper"), other, steps)


def test_export_states_the_digest_of_its_host_half(tmp_path: Path, steps: Steps) -> None:
    exported = export_graph(conversion(write_voice(tmp_path / "voice.onnx"), family="piper"), steps)
    host = exported.info.contract.host
    assert host is not None
    assert host.file == "piper-host.onnx"
    assert host.sha256 == sha256_of(exported.folder / "host.onnx")


def test_conversion_names_the_checkpoint_when_onnxruntime_cannot_load_it(tmp_path: Path, steps: Steps) -> None:
    path = write_voice(tmp_path / "odd.onnx")
    model = onnx.load(path)
    # An operator that nobody has, in the encoder half: the seam is found all the same.
    next(node for node in model.graph.node if node.op_type == "Ceil").domain = "com.example"
    model.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    onnx.save(model, path)
    with pytest.raises(Refusal, match=r"odd\.onnx: onnxruntime cannot load it"):
        export_graph(conversion(path, family="piper"), steps)
