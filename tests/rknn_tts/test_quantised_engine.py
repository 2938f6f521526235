"""An engine of 8 bits on its way: what its ranges are found on reaches the toolkit, by `engine` and by `compile`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from contracts.errors import GateFailure, Refusal, UserInput
from contracts.files import sha256_of_bytes
from contracts.quality import Quality
from converters.precision import FLOW_LOSES, Precision
from rknn_tts.carried import CALIBRATION_KEY, carried_contract, carry, feeds_to_npz
from rknn_tts.outcome import Outcome
from tests.gates.small_graphs import row
from tests.rknn_tts.stand_in_converter import GOOD_LOG, write_converter
from tests.rknn_tts.stand_in_stage import CHECKPOINT, Doubled, export_of, feed, install, write_checkpoint
from tests.rknn_tts.workshop import Heard, Workshop, new_workshop

CALIBRATION = tuple({"x": row(*range(first, first + 8))} for first in (1, 2, 3))
COSINE = (Quality("logits_cosine", "y", 0.9998),)
FULL = "engines/rk3588/mini/twin-net-full-w8a8"

REMEMBERS = f"""
import shutil
print({GOOD_LOG!r}, end="", flush=True)
for name in ("request.json", "calibration.npz"):
    if (folder / name).is_file():
        shutil.copy(folder / name, Path(__file__).with_name(name))
simulate(FACTOR)
"""


@pytest.fixture
def workshop(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A stage whose default is 8 bits; the ratio of its simulator is 34 dB, and its angle none."""
    made = new_workshop(tmp_path_factory)
    write_checkpoint(made.folder.parent)
    converter = write_converter(made.folder.parent / "converter", REMEMBERS.replace("FACTOR", "2.04"))
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(converter))
    install_stage(monkeypatch, Precision("w8a8", least_windows=1))
    return made


def install_stage(patch: pytest.MonkeyPatch, says: Precision, quality: tuple[Quality, ...] = COSINE) -> Doubled:
    doubled = Doubled([], {})
    stage = doubled.stage(options=frozenset({"member", "precision", "calibration", "allow_quantized"}), precision=says)

    def opened(checkpoint: Any, options: Any, open_session: Any) -> Any:
        doubled.opened.append("checkpoint")
        made = export_of(checkpoint, "full", 8, 2.0)
        contract = replace(made.contract, quality=quality)
        calibration = CALIBRATION if says.loses is None else ()
        return lambda role: replace(made, contract=contract, calibration=calibration)

    install(patch, replace(stage, open=opened))
    return doubled


def build(workshop: Workshop, command: str = "engine", said: Heard | None = None, **options: Any) -> Outcome:
    checkpoint = str(workshop.folder.parent / CHECKPOINT)
    given = {"family": "twin", "member": "full", "checkpoint": checkpoint, "target": "rk3588", **options}
    return workshop.run(command, said, **given)


def given_to_the_toolkit(workshop: Workshop) -> list[list[float]]:
    """The windows that ranges are found on, as the converter had them in its folder."""
    beside = workshop.beside(".")
    told = beside.json("request.json")["quantisation"]
    assert {key: told[key] for key in ("dtype", "algorithm", "method")} == {
        "dtype": "w8a8",
        "algorithm": "normal",
        "method": "channel",
    }
    with np.load(beside.folder / told["calibration"]["file"]) as arrays:
        return [arrays[f"{window}_0"].ravel().tolist() for window in range(told["calibration"]["windows"])]


WINDOWS = [list(range(first, first + 8)) for first in (1, 2, 3)]
DIGEST = sha256_of_bytes(feeds_to_npz(CALIBRATION))


def test_engine_of_8_bits_says_what_its_ranges_were_found_on(workshop: Workshop) -> None:
    done = build(workshop)
    assert given_to_the_toolkit(workshop) == WINDOWS
    manifest = workshop.json(f"{FULL}.json")
    assert manifest["quantisation"] == {
        "dtype": "w8a8",
        "algorithm": "normal",
        "method": "channel",
        "calibration": "synthetic",
        "windows": 3,
        "sha256": DIGEST,
        "insisted": False,
    }
    assert any("3 seeded random inputs, which stand in for real ones" in note for note in done.notes)
    ratios = [figure.measured for figure in done.measurements if figure.name == "simulator"]
    assert ratios == [pytest.approx(33.98, abs=0.01)]  # 20 log10(2 / 0.04)
    assert "simulator" not in {verdict.gate for verdict in done.verdicts}
    assert {"quality.logits_cosine": "passed"}.items() <= {v.gate: v.status.value for v in done.verdicts}.items()


def test_build_of_8_bits_is_found_again_and_not_by_other_inputs(workshop: Workshop, tmp_path: Path) -> None:
    build(workshop)
    assert "build" in build(workshop).reused
    np.savez(tmp_path / "real.npz", x=np.arange(16, dtype=np.float32).reshape(2, 8))
    real = build(workshop, calibration=str(tmp_path / "real.npz"))
    assert "build" not in real.reused
    assert given_to_the_toolkit(workshop) == np.arange(16).reshape(2, 8).tolist()
    assert workshop.json(f"{FULL}.json")["quantisation"]["calibration"] == "file"
    np.savez(tmp_path / "real.npz", x=np.arange(1, 17, dtype=np.float32).reshape(2, 8))
    assert "export" not in build(workshop, calibration=str(tmp_path / "real.npz")).reused


def test_engine_in_fp16_owes_its_ratio(workshop: Workshop) -> None:
    with pytest.raises(GateFailure) as caught:
        build(workshop, precision="fp16")
    assert {v.gate for v in caught.value.verdicts if v.status.value == "failed"} == {"simulator"}
    assert workshop.beside(".").json("request.json")["quantisation"] is None


def test_engine_of_8_bits_owes_its_ratio_where_no_figure_judges_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_stage(monkeypatch, Precision("w8a8", least_windows=1), (Quality("logits_cosine", "y"),))
    with pytest.raises(GateFailure, match="simulator"):
        build(workshop)


def test_export_carries_what_ranges_are_found_on_and_compile_hands_it_on(workshop: Workshop) -> None:
    build(workshop, "export")
    (exported,) = workshop.folder.glob("**/twin-net-full-w8a8*.onnx")
    workshop.run("compile", model=str(exported), target="rk3588", output="compiled")
    assert given_to_the_toolkit(workshop) == WINDOWS
    (manifest,) = (path for path in (workshop.folder / "compiled").glob("*.json"))
    assert workshop.json(f"compiled/{manifest.name}")["quantisation"]["sha256"] == DIGEST


@pytest.mark.parametrize("carried", [(), CALIBRATION[:2], ({"x": row(*range(8))}, *CALIBRATION[1:])])
def test_compile_refuses_an_export_whose_calibration_is_lost(
    carried: tuple[dict[str, Any], ...], workshop: Workshop
) -> None:
    build(workshop, "export")
    (exported,) = workshop.folder.glob("**/twin-net-full-w8a8*.onnx")
    import onnx_ir as ir

    model = onnx.load(exported)
    contract = carried_contract(ir.from_proto(model), "x")
    assert contract is not None
    assert CALIBRATION_KEY in {entry.key for entry in model.metadata_props}
    damaged = workshop.folder / "damaged.onnx"
    damaged.write_bytes(carry(exported.read_bytes(), contract, [feed(8)], calibration=carried))
    with pytest.raises(UserInput, match="does not carry the 3 inputs that its ranges are found on; export it again"):
        workshop.run("compile", model=str(damaged), target="rk3588")


def test_stage_that_loses_too_much_is_refused_before_it_is_opened(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubled = install_stage(monkeypatch, Precision(loses=FLOW_LOSES))
    with pytest.raises(Refusal, match=f"twin net is not built in W8A8: {FLOW_LOSES}"):
        build(workshop, precision="w8a8")
    assert doubled.opened == []
    with pytest.raises(GateFailure, match="simulator"):  # what it owes stays what it is in fp16
        build(workshop, precision="w8a8", allow_quantized=True)
    assert given_to_the_toolkit(workshop) == WINDOWS[:1]  # its own inputs


def test_calibration_that_is_not_there_is_refused_by_its_option(workshop: Workshop) -> None:
    with pytest.raises(UserInput, match=r"--calibration nowhere\.npz: there is no such file"):
        build(workshop, calibration="nowhere.npz")
