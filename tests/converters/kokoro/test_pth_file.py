from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.errors import Refusal, ToolFailure, UserInput
from converters.kokoro.layout import TOP_KEYS
from converters.kokoro.pth_file import pth_bytes, read_pth
from tests.kokoro_writer.checkpoint import random_weights, state_dicts, write_checkpoint
from tests.mutations import mutations

TOP = "decoder"
NAME = "generator.conv_post.bias"


class Stranger:
    """Anything but a tensor."""


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(array, other[name]) for name, array in one.items())


@pytest.mark.parametrize("prefix", ["module.", ""])
def test_read_pth_gives_official_names_when_the_wrapper_is_there_or_not(tmp_path: Path, prefix: str) -> None:
    weights = random_weights()
    assert same(read_pth(write_checkpoint(tmp_path, state_dicts(weights, prefix))), weights)


def test_read_pth_reads_the_format_that_torch_wrote_before_version_1_6(tmp_path: Path) -> None:
    weights = random_weights()
    torch.save(state_dicts(weights), tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert same(read_pth(tmp_path / "old.pth"), weights)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8])
def test_read_pth_names_the_tensor_when_it_is_not_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    held = state_dicts(random_weights())
    held[TOP][f"module.{NAME}"] = held[TOP][f"module.{NAME}"].to(dtype)
    half = r" \(an fp16 checkpoint\)" if dtype in (torch.float16, torch.bfloat16) else ""
    told = rf"{TOP}\.module\.{NAME} is {str(dtype)[6:]}{half}, float32 is needed"
    with pytest.raises(Refusal, match=told):
        read_pth(write_checkpoint(tmp_path, held))


def test_read_pth_leaves_out_what_is_no_weight(tmp_path: Path) -> None:
    held = state_dicts(random_weights())
    held["bert"]["module.embeddings.position_ids"] = torch.arange(20)[None]
    held["decoder"]["module.encode.norm1.norm.weight"] = torch.ones(10)
    held["decoder"]["module.encode.norm1.norm.bias"] = torch.zeros(10)
    assert same(read_pth(write_checkpoint(tmp_path, held)), random_weights())


@pytest.mark.parametrize(("rest", "number", "neutral"), [("weight", 1.5, 1), ("bias", 0.5, 0)])
def test_read_pth_refuses_a_norm_when_it_was_trained(tmp_path: Path, rest: str, number: float, neutral: int) -> None:
    held = state_dicts(random_weights())
    held["decoder"][f"module.encode.norm1.norm.{rest}"] = torch.full((10,), number)
    with pytest.raises(Refusal, match=rf"encode\.norm1\.norm\.{rest} is not all {neutral}: norms that were trained"):
        read_pth(write_checkpoint(tmp_path, held))


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({"net": {}, "optimizer": {}}, r"it has net, optimizer \(a StyleTTS2 training checkpoint"),
        ({}, "it has nothing at the top"),
        ({"bert": {}}, "it has bert at the top, and Kokoro's has bert, bert_encoder, predictor"),
        ({f"layer.{i}": torch.ones(1) for i in range(9)}, r"layer\.0, layer\.1, layer\.2, layer\.3, layer\.4, \.\.\."),
        ({key: {} for key in TOP_KEYS[1:]}, rf"it has .* \(it lacks {TOP_KEYS[0]}\); give the official"),
        ({key: {} for key in (*TOP_KEYS, "optimizer")}, r"\(it has besides optimizer\); give the official"),
        ([torch.ones(1)], "it is of the type list, not a dictionary"),
        (torch.ones(1), "it is a tensor, not a dictionary of state dicts"),
    ],
)
def test_read_pth_says_what_it_got_when_the_layout_is_another(tmp_path: Path, held: object, told: str) -> None:
    with pytest.raises(Refusal, match=told):
        read_pth(write_checkpoint(tmp_path, held))


@pytest.mark.parametrize("value", [5, "text", [1.0], {"a": torch.ones(1)}, None])
def test_read_pth_names_the_entry_when_it_is_no_tensor(tmp_path: Path, value: object) -> None:
    held: Any = state_dicts(random_weights())
    held[TOP][f"module.{NAME}"] = value
    with pytest.raises(Refusal, match=rf"{TOP}\.module\.{NAME} is of the type {type(value).__name__}, not a tensor"):
        read_pth(write_checkpoint(tmp_path, held))


def test_read_pth_refuses_a_sparse_tensor(tmp_path: Path) -> None:
    held = state_dicts(random_weights())
    held[TOP][f"module.{NAME}"] = torch.ones(6).to_sparse()
    with pytest.raises(Refusal, match=f"{NAME} is a sparse tensor"):
        read_pth(write_checkpoint(tmp_path, held))


def test_read_pth_refuses_a_top_key_when_it_is_no_state_dict(tmp_path: Path) -> None:
    held: Any = {**state_dicts(random_weights()), "bert_encoder": torch.ones(2)}
    with pytest.raises(Refusal, match="bert_encoder is a"):
        read_pth(write_checkpoint(tmp_path, held))


def test_read_pth_refuses_a_key_when_it_is_no_name(tmp_path: Path) -> None:
    held: Any = state_dicts(random_weights())
    held["bert"][7] = torch.ones(2)
    with pytest.raises(Refusal, match="bert has the key 7, which is no name"):
        read_pth(write_checkpoint(tmp_path, held))


def test_read_pth_refuses_a_tensor_that_is_there_with_the_wrapper_and_without(tmp_path: Path) -> None:
    held = state_dicts(random_weights())
    held[TOP][NAME] = torch.zeros(6)
    with pytest.raises(Refusal, match=rf"holds {TOP}\.module\.{NAME} twice"):
        read_pth(write_checkpoint(tmp_path, held))


@pytest.mark.parametrize("thing", [Stranger(), os.getcwd, torch.nn.Linear(2, 2)])
def test_read_pth_runs_nothing_when_the_file_holds_objects_or_code(tmp_path: Path, thing: object) -> None:
    path = write_checkpoint(tmp_path, {"bert": thing})
    with pytest.raises(Refusal, match="holds objects or code besides tensors, and nothing in a checkpoint is run"):
        read_pth(path)


@pytest.mark.parametrize("data", [b"x", b"PK\x03\x04", b"\x80\x02", b"\x08\x07onnx", b"{}"])
def test_read_pth_refuses_the_file_when_it_is_another_format(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.pth").write_bytes(data)
    with pytest.raises((UserInput, Refusal), match=r"model\.pth: "):
        read_pth(tmp_path / "model.pth")


@pytest.mark.parametrize(
    "data",
    [b"\x40\0\0\0\0\0\0\0" + b'{"a":{}}'.ljust(64), b'{"n_token": 178}', b"hello", b"\x08\x07onnx"],
    ids=["safetensors", "JSON", "text", "ONNX"],
)
def test_read_pth_says_another_format_when_the_file_is_none_of_torch(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.pth").write_bytes(data)
    with pytest.raises(UserInput, match=r"is no torch checkpoint, whatever its name says; .* ends in \.onnx\.$"):
        read_pth(tmp_path / "model.pth")


def test_read_pth_says_damaged_when_the_file_is_cut_off(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path)
    path.write_bytes(path.read_bytes()[:-4000])
    with pytest.raises(UserInput, match=r"is no torch checkpoint, or is damaged .*; get the checkpoint again"):
        read_pth(path)


@pytest.mark.parametrize("is_zip", [True, False])
def test_read_pth_reads_or_refuses_when_the_file_is_damaged_anywhere(tmp_path: Path, is_zip: bool) -> None:
    small = {top: {"module.weight": torch.ones(3)} for top in ("bert", "bert_encoder", "predictor", "decoder")}
    path = tmp_path / "damaged.pth"
    torch.save({**small, "text_encoder": {}}, path, _use_new_zipfile_serialization=is_zip)
    for data in mutations(path.read_bytes(), 300):
        path.write_bytes(data)
        try:
            read_pth(path)
        except (UserInput, Refusal) as error:
            assert "\n" not in str(error)  # noqa: PT017  # which of the two it is depends on the damage


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, "there is no such file"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.touch(), "is empty"),
    ],
)
def test_read_pth_says_so_when_there_is_no_file_to_read(
    tmp_path: Path, make: Callable[[Path], None], told: str
) -> None:
    make(tmp_path / "model.pth")
    with pytest.raises(UserInput, match=told):
        read_pth(tmp_path / "model.pth")


def test_read_pth_says_so_when_torch_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("converters.torch_file.find_spec", lambda name: None)
    with pytest.raises(ToolFailure, match="torch is not installed in this environment"):
        read_pth(tmp_path / "model.pth")


def saved(folder: Path, weights: dict[str, Any]) -> Path:
    path = folder / "saved.pth"
    path.write_bytes(pth_bytes(weights))
    return path


def test_pth_bytes_are_the_official_layout(tmp_path: Path) -> None:
    weights = random_weights()
    held = torch.load(saved(tmp_path, weights), weights_only=True)
    assert list(held) == ["bert", "bert_encoder", "predictor", "decoder", "text_encoder"]
    assert np.array_equal(held[TOP][f"module.{NAME}"].numpy(), weights[f"{TOP}.module.{NAME}"])
    assert same(read_pth(tmp_path / "saved.pth"), weights)


def test_pth_bytes_are_the_same_each_time() -> None:
    assert pth_bytes(random_weights()) == pth_bytes(random_weights())


def test_pth_bytes_are_made_of_arrays_that_may_not_be_written_to(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    weights = random_weights()
    for array in weights.values():
        array.flags.writeable = False
    assert same(read_pth(saved(tmp_path, weights)), weights)
    assert not [warning for warning in recwarn if "writable" in str(warning.message)]
