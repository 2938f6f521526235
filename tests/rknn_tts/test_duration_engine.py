"""The ladder of Piper's duration encoder, from the command to its set, with a stand-in for the toolkit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from contracts.contract import contract_from_metadata
from contracts.errors import GateFailure, UserInput
from contracts.manifest import read_manifest
from contracts.verdicts import Status
from rknn_tts.outcome import Outcome
from tests.converters.duration_voices import ATTENTIVE, computed, settings, tokens
from tests.onnx_runs import Array, run
from tests.rknn_tts.stand_in_converter import GOOD_LOG, write_converter
from tests.rknn_tts.workshop import Workshop, new_workshop
from tests.vits_writer.voice import write_voice

WIDTHS = (17, 24)
FOLDER = "engines/rk3588/mini"
STEMS = {width: f"{FOLDER}/piper-duration_encoder-n{width}" for width in WIDTHS}
SET, HOST = f"{FOLDER}/piper-duration_encoder.set.json", f"{FOLDER}/piper-duration-host.onnx"
OPTIONS: dict[str, Any] = {"family": "piper", "stage": "duration_encoder", "widths": "17,24", "target": "rk3588"}
IDS = [1, 0, 20, 0, 14, 0, 2]


def simulating(conditioning: float) -> str:
    """A good build, whose simulator gives what onnxruntime does, but for the conditioning, times a factor."""
    return f"""
    import numpy as np
    import onnxruntime
    print({GOOD_LOG!r}, end="", flush=True)
    names = json.loads((folder / "request.json").read_text())["feeds"]["names"]
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    outputs = [value.name for value in session.get_outputs()]
    simulated = {{}}
    with np.load(folder / "feeds.npz") as feeds:
        for window in range(len(feeds.files) // len(names)):
            got = session.run(outputs, {{name: feeds[f"{{window}}_{{i}}"] for i, name in enumerate(names)}})
            for i, (name, array) in enumerate(zip(outputs, got)):
                factor = {conditioning} if name == "conditioning" else 1
                simulated[f"{{window}}_{{i}}"] = array * np.float32(factor)
    np.savez(folder / "simulated.npz", **simulated)
    compile()
    (folder / "result.json").write_text(json.dumps({{"step": "done", "outputs": outputs}}))
    """


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = new_workshop(tmp_path_factory)
    write_voice(made.folder.parent / "mini.onnx", ATTENTIVE)
    return made


def build(workshop: Workshop, conditioning: float, **options: Any) -> Outcome:
    write_converter(workshop.folder.parent / "converter", simulating(conditioning))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(workshop.folder.parent / "converter"))
        return workshop.run("engine", checkpoint=str(workshop.folder.parent / "mini.onnx"), **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def built(workshop: Workshop) -> Outcome:
    return build(workshop, conditioning=1.0)


def test_ladder_is_a_set_of_an_engine_a_width_with_one_host_half(workshop: Workshop, built: Outcome) -> None:
    files = {f"{stem}.{suffix}" for stem in STEMS.values() for suffix in ("rknn", "onnx", "json")}
    assert {name for name in workshop.files() if name.startswith("engines")} == files | {SET, HOST}
    assert workshop.json(SET)["roles"] == {f"n{width}": f"{Path(stem).name}.rknn" for width, stem in STEMS.items()}
    for width, stem in STEMS.items():
        manifest = read_manifest(workshop.folder / f"{stem}.json")
        assert (manifest.family, manifest.stage, manifest.role) == ("piper", "duration_encoder", f"n{width}")
        assert [(spec.name, spec.shape, spec.dtype) for spec in manifest.inputs] == [
            ("input", (1, width), "int64"),
            ("input_lengths", (1,), "int64"),
        ]
        assert [(spec.name, spec.shape) for spec in manifest.outputs] == [
            ("stats", (1, 2 * ATTENTIVE.latent, 1, width)),
            ("conditioning", (1, ATTENTIVE.hidden, 1, width)),
        ]
        assert manifest.host is not None
        assert manifest.host.sha256 == workshop.digest(HOST)


def test_ladder_passes_every_gate_of_each_width(workshop: Workshop, built: Outcome) -> None:
    assert {verdict.status for verdict in built.verdicts} == {Status.PASSED}
    gates = {verdict.gate for verdict in built.verdicts}
    for width in WIDTHS:
        owed = {f"fp32.padded_n{count}" for count in (1, 17, width - 1, width)}
        owed |= {"fp32.cut", "host.latent", "host.padded", "simulator", "simulator.drift"}
        assert {f"n{width}.{gate}" for gate in owed} <= gates


def test_twins_and_host_half_speak_as_the_voice_does(workshop: Workshop, built: Outcome) -> None:
    wanted = computed(ATTENTIVE, {**tokens(IDS), **settings((0.0, 1.0, 0.0))})
    for width, stem in STEMS.items():
        outputs = run(onnx.load(workshop.folder / f"{stem}.onnx"), tokens(IDS, width))
        encoded = {name: array[:, :, 0] for name, array in outputs.items()}
        noise: dict[str, Array] = {
            "noise_duration": np.zeros((1, 2, width), np.float32),
            "noise_latent": np.zeros((1, ATTENTIVE.latent, 500), np.float32),
        }
        counted = {"input_lengths": tokens(IDS)["input_lengths"]}
        spoken = run(onnx.load(workshop.folder / HOST), {**encoded, **counted, **settings((0.0, 1.0, 0.0)), **noise})
        np.testing.assert_array_equal(spoken["durations"], wanted["durations"])
        np.testing.assert_allclose(spoken["z"], wanted["z"], atol=1e-4)


def test_twin_carries_the_bound_of_the_drift(workshop: Workshop, built: Outcome) -> None:
    twin = onnx.load(workshop.folder / f"{STEMS[24]}.onnx")
    contract = contract_from_metadata({entry.key: entry.value for entry in twin.metadata_props})
    assert contract is not None
    assert contract.drift is not None
    assert (contract.drift.output, contract.drift.most_percent) == ("durations", 7.0)


def test_ladder_is_not_written_when_durations_drift(workshop: Workshop, built: Outcome) -> None:
    elsewhere = workshop.fresh("drifting")
    with pytest.raises(GateFailure) as caught:
        build(elsewhere, conditioning=3.0, widths="17")
    failed = {verdict.gate for verdict in caught.value.verdicts if verdict.status is Status.FAILED}
    assert failed == {"simulator", "simulator.drift"}
    assert not [name for name in elsewhere.files() if name.startswith("engines")]


def test_export_writes_every_width_and_their_host_half(workshop: Workshop, built: Outcome) -> None:
    beside = workshop.beside("exports")
    done = beside.run("export", checkpoint=str(workshop.folder.parent / "mini.onnx"), **OPTIONS)
    assert "export" in done.reused
    names = {*(f"{stem}.onnx" for stem in STEMS.values()), HOST}
    assert beside.files() == {name.replace("engines/", "engines/onnx/") for name in names}
    assert beside.digest(HOST.replace("engines/", "engines/onnx/")) == workshop.digest(HOST)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("widths", "24,17", r"--widths 24,17: whole numbers of tokens are expected, ascending"),
        ("relative", "none", r"--relative none: banded or gather is expected\."),
        ("window", 64, r"piper duration_encoder has no option --window\."),
        ("sample", "heard", r"piper duration_encoder has no option --sample\."),
    ],
)
def test_ladder_is_refused_before_the_voice_is_opened(workshop: Workshop, option: str, value: Any, text: str) -> None:
    with pytest.raises(UserInput, match=rf"^{text}"):
        workshop.run("engine", checkpoint=str(workshop.folder.parent / "mini.onnx"), **{**OPTIONS, option: value})
