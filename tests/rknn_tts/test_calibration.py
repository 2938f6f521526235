"""Reading a calibration set that nobody vouches for, and what becomes of a stage's export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from contracts.contract import Contract, Source
from contracts.errors import Refusal, UserInput
from converters.precision import FLOW_LOSES, Precision
from converters.stages import Evidence, Stage, StageExport, StageOptions, of_one
from rknn_tts import calibration as module
from rknn_tts.calibration import check_precision, in_precision, read_calibration
from tests.gates.small_graphs import scale_proto

INPUTS = (
    ir.Value(name="hidden", shape=ir.Shape([1, 4, 1, 1]), type=ir.TensorType(ir.DataType.FLOAT)),
    ir.Value(name="ids", shape=ir.Shape([1, 2]), type=ir.TensorType(ir.DataType.INT64)),
)
HIDDEN = np.arange(1, 13, dtype=np.float64).reshape(3, 4)
IDS = np.array([[0, 1], [2, 3], [4, 5]], np.int32)


def npz(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("shape", [(3, 4), (3, 1, 4), (3, 1, 4, 1, 1), (3, 4, 1)])
def test_calibration_is_a_window_for_each_place_of_the_first_axis(shape: tuple[int, ...], tmp_path: Path) -> None:
    windows = read_calibration(npz(tmp_path, ids=IDS, hidden=HIDDEN.reshape(shape)), INPUTS, 3)
    assert [list(window) for window in windows] == [["hidden", "ids"]] * 3
    assert [window["hidden"].shape for window in windows] == [(1, 4, 1, 1)] * 3
    assert windows[1]["hidden"].dtype == np.float32
    assert windows[1]["hidden"].ravel().tolist() == [5, 6, 7, 8]
    assert windows[2]["ids"].dtype == np.int64
    assert windows[2]["ids"].tolist() == [[4, 5]]


def test_calibration_may_hold_a_state_that_is_zero_at_first(tmp_path: Path) -> None:
    windows = read_calibration(npz(tmp_path, ids=IDS, hidden=HIDDEN * 0), INPUTS, 3)
    assert not np.any(windows[2]["hidden"])


def changed(array: Any, value: float) -> Any:
    made = np.array(array, np.float64)
    made[1, 2] = value
    return made


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"hiden": HIDDEN, "ids": IDS}, "holds an array 'hiden', and there is no such input. Did you mean hidden?"),
        ({"hidden": HIDDEN}, r"has no array for the input ids: int64 of shape \[N, 2\]"),
        ({"hidden": HIDDEN.T, "ids": IDS}, r"array hidden has the shape \[4, 3\]; float32 of shape \[N, 4\]"),
        ({"hidden": HIDDEN[0], "ids": IDS}, r"array hidden has the shape \[4\]"),
        ({"hidden": np.float32(1), "ids": IDS}, r"array hidden has the shape \[\]"),
        ({"hidden": HIDDEN.astype(np.int64), "ids": IDS}, "array hidden is of the type int64; float32 of shape"),
        ({"hidden": HIDDEN.astype(np.complex64), "ids": IDS}, "array hidden is of the type complex64"),
        ({"hidden": HIDDEN, "ids": IDS * 0.5}, "array ids is of the type float64; int64"),
        ({"hidden": changed(HIDDEN, np.nan), "ids": IDS}, "array hidden holds a NaN, an infinity or"),
        ({"hidden": changed(HIDDEN, np.inf), "ids": IDS}, "array hidden holds a NaN, an infinity or"),
        ({"hidden": changed(HIDDEN, 1e39), "ids": IDS}, "what is too large for float32"),
        ({"hidden": HIDDEN * 0, "ids": IDS * 0}, "holds zeros alone, of which nothing has a range"),
        ({"hidden": HIDDEN, "ids": np.uint64(IDS) + np.uint64(2**63)}, "array ids holds numbers that are too large"),
        ({"hidden": HIDDEN, "ids": IDS[:2]}, "holds 3 inputs of hidden and 2 of ids"),
        ({"hidden": HIDDEN[:2], "ids": IDS[:2]}, "holds 2 inputs, and 3 are needed at least"),
        ({"hidden": HIDDEN[:0], "ids": IDS[:0]}, "holds 0 inputs, and 3 are needed at least"),
        ({}, "has no array for the input hidden"),
    ],
)
def test_calibration_is_refused_in_a_sentence_when_it_does_not_fit(
    arrays: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = npz(tmp_path, **arrays)
    with pytest.raises(UserInput, match=words) as caught:
        read_calibration(path, INPUTS, 3)
    assert str(caught.value).startswith(f"--calibration {path}: ")


def test_calibration_is_refused_when_it_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT_BYTES", 3 * 4 * 4 + 3 * 2 * 8 - 1)
    with pytest.raises(UserInput, match="GB is the limit; give fewer inputs"):
        read_calibration(npz(tmp_path, hidden=HIDDEN, ids=IDS), INPUTS, 3)


def test_calibration_is_refused_when_it_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_text("hidden")
    with pytest.raises(UserInput, match=r"--calibration .*a\.npz: it is no \.npz file"):
        read_calibration(tmp_path / "a.npz", INPUTS, 3)


X = {"x": np.ones((1, 4), np.float32)}
OWN, DRAWN = {"x": X["x"] * np.float32(2)}, {"x": X["x"] * np.float32(3)}


def export(**changes: Any) -> StageExport:
    values: dict[str, Any] = {
        "stem": "twin-net",
        "contract": Contract("twin", "net", Source("a.pt", "ab" * 32, "checkpoint"), (), ()),
        "model": ir.from_proto(scale_proto(2.0)),
        "passes": (),
        "feeds": (OWN,),
        "padded_feeds": (),
        "host": None,
        "host_file": "",
        "notes": ("a note",),
        "evidence": lambda: Evidence(()),
        **changes,
    }
    return StageExport(**values)


def stage(precision: Precision | None, *options: str) -> Stage:
    return Stage("twin", "net", "", None, frozenset(options), lambda *_: of_one(export()), precision=precision)


HEAD = stage(Precision("w8a8", least_windows=7, held_out=4), "precision", "calibration")
FLOW = stage(Precision(loses=FLOW_LOSES), "precision", "calibration", "allow_quantized")


@pytest.mark.parametrize("built", [HEAD, stage(None)])
def test_export_in_fp16_is_quantised_on_nothing(built: Stage) -> None:
    precision = None if built.precision is None else "fp16"
    made = in_precision(export(calibration=(DRAWN,)), built, StageOptions(precision=precision))
    assert (made.stem, made.contract.quantisation, made.calibration, made.notes) == ("twin-net", None, (), ("a note",))


def test_export_in_8_bits_says_that_its_ranges_are_of_seeded_inputs() -> None:
    made = in_precision(export(calibration=(DRAWN,) * 5), HEAD, StageOptions())
    assert made.stem == "twin-net-w8a8"
    assert made.contract.quantisation is not None
    assert (made.contract.quantisation.calibration, made.contract.quantisation.insisted) == ("synthetic", False)
    assert made.calibration == (DRAWN,) * 5
    assert made.feeds == (OWN,)
    assert " ".join(made.notes[1:]) == (
        "W8A8: the ranges of activations are found on 5 seeded random inputs, which stand in for real ones; "
        "--calibration FILE.npz names real ones."
    )


def test_export_is_judged_on_the_last_inputs_of_a_file_which_ranges_are_not_found_on(tmp_path: Path) -> None:
    rows = np.arange(1, 37, dtype=np.float32).reshape(9, 4)
    options = StageOptions(calibration=str(npz(tmp_path, x=rows)))
    made = in_precision(export(calibration=(DRAWN,)), HEAD, options)
    assert made.contract.quantisation is not None
    assert made.contract.quantisation.calibration == "file"
    assert [window["x"].ravel().tolist() for window in made.calibration] == rows[:7].tolist()
    assert [window["x"].ravel().tolist() for window in made.feeds] == rows[7:].tolist()
    assert made.notes[1].endswith("found on 7 inputs of set.npz; it is judged on the last 2 there.")


def test_file_of_few_inputs_leaves_one_to_be_judged_on(tmp_path: Path) -> None:
    few = stage(Precision("w8a8", least_windows=2, held_out=4), "precision", "calibration")
    rows = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    made = in_precision(export(), few, StageOptions(calibration=str(npz(tmp_path, x=rows))))
    assert [len(made.calibration), len(made.feeds)] == [3, 1]
    with pytest.raises(UserInput, match="holds 3 inputs, and 4 are needed at least"):
        in_precision(export(), few, StageOptions(calibration=str(npz(tmp_path, x=rows[:3]))))


@pytest.mark.parametrize(("rows", "enough"), [(8, False), (9, True)])
def test_file_must_leave_enough_inputs_when_some_are_held_out(rows: int, enough: bool, tmp_path: Path) -> None:
    options = StageOptions(calibration=str(npz(tmp_path, x=np.ones((rows, 4), np.float32))))
    if enough:
        assert len(in_precision(export(), HEAD, options).calibration) == 7
    else:
        with pytest.raises(UserInput, match="holds 8 inputs, and 9 are needed at least"):
            in_precision(export(), HEAD, options)


def test_export_that_loses_too_much_is_built_on_its_own_inputs_where_the_user_insists(tmp_path: Path) -> None:
    insisting = StageOptions(precision="w8a8", allow_quantized=True)
    made = in_precision(export(), FLOW, insisting)
    assert made.contract.quantisation is not None
    assert (made.contract.quantisation.calibration, made.contract.quantisation.insisted) == ("feeds", True)
    assert made.calibration == made.feeds == (OWN,)
    assert made.notes[2] == f"W8A8 was insisted on, although {FLOW_LOSES}; its gates are those of fp16."
    path = npz(tmp_path, x=np.ones((20, 4), np.float32))
    real = in_precision(export(), FLOW, StageOptions(precision="w8a8", allow_quantized=True, calibration=str(path)))
    assert (len(real.calibration), real.feeds) == (20, (OWN,))


def test_precision_is_checked_before_anything_is_opened() -> None:
    with pytest.raises(Refusal, match=f"twin net is not built in W8A8: {FLOW_LOSES}"):
        check_precision(FLOW, StageOptions(precision="w8a8"))
