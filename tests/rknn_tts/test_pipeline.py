"""The road of a checkpoint from end to end, with the real toolkit, on a small voice."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import onnx
from numpy.typing import NDArray
from rknn_tts_runtime import decode_windowed

from contracts.contract import contract_from_metadata
from contracts.files import sha256_of
from contracts.manifest import manifest_text, read_manifest
from rknn_tts.outcome import Outcome
from rknn_tts.verify_record import with_board
from tests.contracts.samples import BOARD
from tests.converters.voices import whole_voice
from tests.onnx_runs import open_session, run, snr_db
from tests.rknn_tts.workshop import ENGINE, LOG, Heard, Workshop
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import write_voice

FILES = {
    f"{ENGINE}.rknn",
    f"{ENGINE}.json",
    f"{ENGINE}.onnx",
    "engines/rk3588/mini/piper-host.onnx",
    f"{LOG}.log",
    f"{LOG}.layers.json",
}

# The manifest of the design, version 1.
MANIFEST_KEYS = {
    "schema",
    "family",
    "stage",
    "target",
    "toolkit",
    "source",
    "onnx",
    "host",
    "engine",
    "inputs",
    "outputs",
    "window",
    "cache",
    "noise",
    "passes",
    "skipped",
    "verdicts",
    "measurements",
    "layers",
    "memory",
    "log",
    "board",
}

FP32_GATES = {
    "pass.normalise_static_inputs",
    "pass.rewrite_interface_axes",
    "pass.fold_constants",
    "pass.normalise_header",
    "fp32.cut",
    "host.latent",
    "fp32.encoder_one_window.whole",
    "fp32.encoder_several_windows.whole",
    "fp32.encoder_several_windows.worst_interior",
    "fp32.noise_300_frames.whole",
    "fp32.noise_300_frames.worst_interior",
}
GRAPH_GATES = {"structure.operators", "structure.static_shapes", "range.weights", "range.activations"}
BUILD_GATES = {
    "log.complete",
    "log.random_weights",
    "log.kernels",
    "log.memory",
    "log.regtask",
    "log.regtask_count",
    "log.unknown_errors",
    "log.layer_table",
    "simulator",
}


def gates_of(outcome: Outcome) -> list[str]:
    return [verdict.gate for verdict in outcome.verdicts]


def test_engine_writes_the_files_of_the_design_and_no_others(workshop: Workshop, built: Outcome) -> None:
    assert {name for name in workshop.files() if ("/mini" in name and "w109" in name) or "host" in name} >= FILES
    assert built.files[0] == f"{ENGINE}.rknn"
    assert set(built.files) | {built.log} == FILES


def test_engine_states_the_digest_of_every_file(workshop: Workshop, built: Outcome) -> None:
    manifest = workshop.json(f"{ENGINE}.json")
    for key in ("engine", "onnx", "host"):
        entry = manifest[key]
        assert entry["sha256"] == workshop.digest(f"engines/rk3588/mini/{entry['file']}"), key
    assert manifest["engine"]["bytes"] == (workshop.folder / f"{ENGINE}.rknn").stat().st_size
    assert manifest["source"] == {
        "name": "mini.onnx",
        "kind": "checkpoint",
        "sha256": sha256_of(workshop.folder.parent / "mini.onnx"),
    }


def test_engine_states_every_key_of_the_design(workshop: Workshop, built: Outcome) -> None:
    manifest = workshop.json(f"{ENGINE}.json")
    assert set(manifest) >= MANIFEST_KEYS
    assert manifest["schema"] == "rknn-tts/engine/1"
    assert (manifest["family"], manifest["stage"], manifest["target"]) == ("piper", "decoder", "rk3588")
    assert manifest["toolkit"] == {"name": "rknn-toolkit2", "version": "2.3.2", "disabled_rules": []}
    assert manifest["inputs"] == [
        {"name": "z", "shape": [1, 8, 1, 109], "dtype": "float32"},
        {"name": "y_mask", "shape": [1, 1, 1, 109], "dtype": "float32"},
    ]
    assert manifest["outputs"] == [{"name": "audio", "shape": [1, 1, 1, 109 * 16], "dtype": "float32"}]
    assert manifest["window"] == {
        "frames": 109,
        "emitted": 45,
        "left": 32,
        "right": 32,
        "hop": 16,
        "sample_rate": 16000,
    }
    assert (manifest["cache"], manifest["board"]) == (None, None)
    assert manifest["layers"]["file"] == f"{LOG}.layers.json"
    assert len(workshop.json(f"{LOG}.layers.json")) == manifest["layers"]["count"]
    assert manifest["layers"]["cpu"] == []
    assert manifest["layers"]["modelled_ms"] > 0
    assert manifest["memory"]["internal_kb"] > 0
    assert read_manifest(workshop.folder / f"{ENGINE}.json") == built.manifest


def test_engine_lists_every_gate_once_and_all_passed(workshop: Workshop, built: Outcome) -> None:
    gates = gates_of(built)
    assert set(gates) >= FP32_GATES | GRAPH_GATES | BUILD_GATES
    assert len(gates) == len(set(gates))
    assert {verdict.status.value for verdict in built.verdicts} == {"passed"}
    assert workshop.json(f"{ENGINE}.json")["verdicts"] == [
        {**dataclasses.asdict(v), "status": "passed", "measured": "inf" if v.measured == math.inf else v.measured}
        for v in built.verdicts
    ]
    assert [m.name for m in built.measurements if m.name.startswith("fp32.")] == ["fp32.encoder_short.short"]


def test_engine_leaves_a_twin_that_carries_contract_and_proof(workshop: Workshop, built: Outcome) -> None:
    twin = onnx.load(workshop.folder / f"{ENGINE}.onnx")
    onnx.checker.check_model(twin, full_check=True)
    assert twin.ir_version <= 10
    assert twin.opset_import[0].version <= 19
    forbidden = {"Shape", "Range", "If", "Loop", "RandomNormalLike", "RandomUniformLike"}
    assert not forbidden & {node.op_type for node in twin.graph.node}
    contract = contract_from_metadata({entry.key: entry.value for entry in twin.metadata_props})
    assert contract is not None
    assert built.manifest is not None
    assert (contract.window, contract.inputs, contract.source) == (
        built.manifest.window,
        built.manifest.inputs,
        built.manifest.source,
    )
    assert {verdict.gate for verdict in contract.verdicts} >= FP32_GATES


def test_host_half_and_twin_together_speak_as_the_voice_does(workshop: Workshop, built: Outcome) -> None:
    ids = [1, 0, *(i for symbol in range(10, 40) for i in (symbol, 0)), 2]
    wanted = whole_voice(Recipe(), ids, (0.0, 2.0, 0.0))
    host = run(
        onnx.load(workshop.folder / "engines/rk3588/mini/piper-host.onnx"),
        {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([0.0, 2.0, 0.0], np.float32),
            "noise_duration": np.zeros((1, 2, len(ids)), np.float32),
            "noise_latent": np.zeros((1, 8, 1000), np.float32),
        },
    )
    assert host["z"].shape[-1] > 109
    decode = open_session(onnx.load(workshop.folder / f"{ENGINE}.onnx"))

    def wide(array: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.expand_dims(array, 2)

    samples = decode_windowed(
        lambda z, mask: decode({"z": wide(z), "y_mask": wide(mask)})["audio"],
        host["z"],
        host["y_mask"],
        *(109, 32, 32, 16),
    )
    assert snr_db(wanted["output"].reshape(-1), samples) >= 95


def test_engine_finds_everything_again_when_nothing_has_changed(workshop: Workshop, voice: str, built: Outcome) -> None:
    before = {name: (workshop.folder / name).stat().st_mtime_ns for name in FILES}
    said = Heard()
    again = workshop.build(said, checkpoint=voice)
    assert set(again.reused) == {"export", "graph", "prove", "activations", "build", "judge"}
    assert said.steps == []
    assert again.manifest == built.manifest
    assert {name: (workshop.folder / name).stat().st_mtime_ns for name in FILES} == before


def test_engine_writes_again_what_was_lost_or_spoilt(workshop: Workshop, voice: str, built: Outcome) -> None:
    before = {name: workshop.digest(name) for name in FILES}
    (workshop.folder / f"{ENGINE}.rknn").write_bytes(b"spoilt")
    (workshop.folder / f"{ENGINE}.json").unlink()
    (workshop.folder / f"{LOG}.layers.json").unlink()
    (workshop.folder / f"{LOG}.log").unlink()
    workshop.build(checkpoint=voice)
    lost = {f"{LOG}.log"}  # the raw log is not kept with the build, its clean lines are
    assert {name: workshop.digest(name) for name in FILES - lost} == {n: d for n, d in before.items() if n not in lost}
    assert (workshop.folder / f"{LOG}.log").is_file()


def test_engine_is_the_same_to_the_byte_when_it_is_built_again(workshop: Workshop, voice: str, built: Outcome) -> None:
    other = workshop.fresh("again")
    said = Heard()
    other.build(said, checkpoint=voice, force=True)
    assert any(step.startswith("building") for step in said.steps)
    for name in (f"{ENGINE}.rknn", f"{ENGINE}.onnx", "engines/rk3588/mini/piper-host.onnx"):
        assert other.digest(name) == workshop.digest(name), name


def test_export_writes_graph_and_host_half(exported: Workshop) -> None:
    folder = "engines/onnx/rk3588/mini"
    assert exported.files() == {f"{folder}/piper-decoder-w109.onnx", f"{folder}/piper-host.onnx"}


def test_export_writes_the_twin_that_an_engine_has(workshop: Workshop, built: Outcome, exported: Workshop) -> None:
    assert exported.digest("engines/onnx/rk3588/mini/piper-decoder-w109.onnx") == workshop.digest(f"{ENGINE}.onnx")


def test_compile_of_the_export_makes_the_same_engine_on_another_machine(
    workshop: Workshop, built: Outcome, exported: Workshop
) -> None:
    elsewhere = workshop.fresh("elsewhere")
    for path in (exported.folder / "engines/onnx/rk3588/mini").iterdir():
        (elsewhere.folder / path.name).write_bytes(path.read_bytes())
    done = elsewhere.run("compile", model="piper-decoder-w109.onnx", target="rk3588")
    assert done.files == built.files
    assert elsewhere.files() == FILES | {"piper-decoder-w109.onnx", "piper-host.onnx"}
    for name in (f"{ENGINE}.rknn", f"{ENGINE}.onnx", "engines/rk3588/mini/piper-host.onnx"):
        assert elsewhere.digest(name) == workshop.digest(name), name
    assert sorted(gates_of(done)) == sorted(gates_of(built))
    assert done.manifest is not None
    assert built.manifest is not None
    assert dataclasses.replace(done.manifest, verdicts=(), measurements=()) == dataclasses.replace(
        built.manifest, verdicts=(), measurements=()
    )


def test_compile_says_so_when_the_host_half_is_not_beside_the_onnx(workshop: Workshop, exported: Workshop) -> None:
    alone = workshop.beside("alone")
    name = "piper-decoder-w109.onnx"
    (alone.folder / name).write_bytes((exported.folder / "engines/onnx/rk3588/mini" / name).read_bytes())
    done = alone.run("compile", model=name, target="rk3588")
    assert any("piper-host.onnx" in note and "missing" in note for note in done.notes)
    assert done.manifest is not None
    assert done.manifest.host is None
    assert "engines/rk3588/mini/piper-host.onnx" not in alone.files()


def test_engine_with_decoder_mask_proves_short_utterances_too(workshop: Workshop, voice: str) -> None:
    done = workshop.build(checkpoint=voice, decoder_mask=True)
    assert done.files[0] == f"{ENGINE}-masked.rknn"
    short = next(v for v in done.verdicts if v.gate == "fp32.encoder_short.short")
    assert (short.status.value, short.threshold) == ("passed", 95.0)
    assert "pass.mask_decoder" in gates_of(done)
    assert done.manifest is not None
    assert [p.name for p in done.manifest.passes if p.hits == 17] == ["mask_decoder"]


def test_engine_keeps_board_figures_as_long_as_it_is_the_same_engine(
    workshop: Workshop, voice: str, built: Outcome
) -> None:
    path = workshop.folder / f"{ENGINE}.json"
    probed = with_board(read_manifest(path), BOARD)
    path.write_text(manifest_text(probed), encoding="utf-8")
    done = workshop.build(checkpoint=voice)
    assert done.manifest == probed == read_manifest(path)
    assert "FAILED on a board (2026-11-30T12:00:00+00:00): board.field." in done.notes
    other = dataclasses.replace(probed, engine=dataclasses.replace(probed.engine, sha256="00" * 32))
    path.write_text(manifest_text(other), encoding="utf-8")
    done = workshop.build(checkpoint=voice)
    assert done.manifest is not None
    assert done.manifest.board is None
    assert any(note.startswith("LOST: a board's figures of 2026-11-30") for note in done.notes)


def test_success_removes_the_verdicts_of_an_earlier_failure(workshop: Workshop, voice: str, built: Outcome) -> None:
    failed = workshop.folder / f"{LOG}.failed.json"
    failed.write_text("{}")
    workshop.build(checkpoint=voice)
    assert not failed.exists()


def test_engine_goes_where_output_says(workshop: Workshop, voice: str, built: Outcome) -> None:
    place = workshop.beside("chosen")
    done = place.build(checkpoint=voice, output="my engines/best.rknn")
    assert done.files[0] == "my engines/best.rknn"
    assert {name for name in place.files() if not name.startswith("build-logs")} == {
        "my engines/best.rknn",
        "my engines/best.json",
        "my engines/best.onnx",
        "my engines/piper-host.onnx",
    }
    assert place.digest("my engines/best.rknn") == workshop.digest(f"{ENGINE}.rknn")


def test_engine_is_opened_again_when_the_json_beside_the_voice_changes(workshop: Workshop) -> None:
    path = workshop.folder.parent / "changing.onnx"
    rates = []
    for sample_rate in (16000, 22050):
        write_voice(path, Recipe(sample_rate=sample_rate))
        workshop.run("export", family="piper", checkpoint=str(path))
        twin = onnx.load(workshop.folder / "engines/onnx/changing/piper-decoder-w109.onnx")
        contract = contract_from_metadata({entry.key: entry.value for entry in twin.metadata_props})
        assert contract is not None
        assert contract.window is not None
        rates.append(contract.window.sample_rate)
    assert rates == [16000, 22050]


def test_engine_is_opened_again_when_external_weights_change(workshop: Workshop) -> None:
    path = workshop.folder.parent / "external" / "voice.onnx"
    path.parent.mkdir()
    digests = set()
    for seed in (0, 1):
        write_voice(path, Recipe(seed=seed))
        model = onnx.load(path)
        (path.parent / "weights.bin").unlink(missing_ok=True)
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        workshop.run("export", family="piper", checkpoint=str(path))
        digests.add(workshop.digest("engines/onnx/voice/piper-decoder-w109.onnx"))
    assert len(digests) == 2
