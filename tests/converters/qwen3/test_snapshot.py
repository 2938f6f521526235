from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts.errors import UserInput
from converters.qwen3.layout import layout
from converters.qwen3.snapshot import open_snapshot
from tests.qwen3_configs import REDUCED
from tests.qwen3_snapshots import safetensors_bytes, write_snapshot

Weights = dict[str, NDArray[Any]]

SCALE = "decoder.pre_transformer.layers.1.mlp_layer_scale.scale"


def drawn() -> Weights:
    rng = np.random.default_rng(3)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in layout(REDUCED).items()}


def without(name: str) -> Weights:
    weights = drawn()
    del weights[name]
    return weights


def same(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def refused(path: Path, use: Callable[[Path], object] = open_snapshot) -> str:
    """The sentence: one line that begins with a path and ends with a full stop."""
    with pytest.raises(UserInput) as caught:
        use(path)
    said = str(caught.value)
    assert said.startswith("/")
    assert said.endswith(".")
    assert "\n" not in said
    return said


def weights_of(path: Path) -> Weights:
    return open_snapshot(path).weights()


def test_open_snapshot_reads_the_decoder_and_nothing_of_the_encoder(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path / "Qwen3-TTS-12Hz-0.6B-Base", REDUCED, drawn())
    found = open_snapshot(folder.parent)
    assert (found.config, found.sample_rate, found.folder) == (REDUCED, 24000, folder)
    assert found.files == (folder / "model.safetensors", folder / "config.json")
    weights = found.weights()
    assert same(weights, drawn())
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
    assert all(array.flags.writeable for array in weights.values())  # torch shares their memory


@pytest.mark.parametrize("file", ["", "model.safetensors", "config.json"])
def test_open_snapshot_takes_the_tokenizers_folder_or_a_file_in_it(tmp_path: Path, file: str) -> None:
    folder = write_snapshot(tmp_path / "voice", REDUCED, drawn())
    found = open_snapshot(folder / file)
    assert (found.folder, found.name) == (folder, "voice")


def test_open_snapshot_takes_a_tokenizer_by_itself(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn()).rename(tmp_path / "Qwen3-TTS-Tokenizer-12Hz")
    assert open_snapshot(folder).name == "Qwen3-TTS-Tokenizer-12Hz"


def test_open_snapshot_takes_the_repositorys_name_in_the_hubs_cache(tmp_path: Path) -> None:
    """Where each file is a link to a blob."""
    root = tmp_path / "models--Qwen--Qwen3-TTS-12Hz-0.6B-Base"
    folder = write_snapshot(root / "snapshots" / "5d83992436eae1d760afd27aff78a71d676296fc", REDUCED, drawn())
    (root / "blobs").mkdir()
    for name in ("config.json", "model.safetensors"):
        blob = (folder / name).rename(root / "blobs" / f"blob of {name}")
        (folder / name).symlink_to(blob)
    found = open_snapshot(folder.parent)
    assert found.name == "Qwen3-TTS-12Hz-0.6B-Base"
    assert same(found.weights(), drawn())


def test_source_is_the_snapshot_and_the_digest_of_what_is_read(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path / "Qwen3-TTS-12Hz-0.6B-Base", REDUCED, drawn())
    one = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    other = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    wanted = hashlib.sha256(f"{one}  model.safetensors\n{other}  config.json\n".encode()).hexdigest()
    source = open_snapshot(folder).source()
    assert (source.name, source.kind, source.sha256) == ("Qwen3-TTS-12Hz-0.6B-Base.safetensors", "checkpoint", wanted)


@pytest.mark.parametrize("shards", [1, 3])
def test_open_snapshot_reads_shards(tmp_path: Path, shards: int) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn(), shards=shards)
    found = open_snapshot(folder)
    assert same(found.weights(), drawn())
    assert {path.name for path in found.files} == {path.name for path in folder.iterdir()}
    assert found.files[-2:] == (folder / "model.safetensors.index.json", folder / "config.json")


def test_open_snapshot_does_not_need_a_shard_without_the_decoder(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn(), shards=2)
    index = folder / "model.safetensors.index.json"
    data = json.loads(index.read_text())
    data["weight_map"]["encoder.quantizer.codebook"] = "model-00003-of-00003.safetensors"
    index.write_text(json.dumps(data))
    assert same(open_snapshot(folder).weights(), drawn())


def test_open_snapshot_turns_bfloat16_into_float32(tmp_path: Path) -> None:
    """Numbers with eight bits of mantissa are the same in both."""
    weights = {name: (array.view(np.uint32) & 0xFFFF0000).view(np.float32) for name, array in drawn().items()}
    found = open_snapshot(write_snapshot(tmp_path, REDUCED, weights, "BF16")).weights()
    assert same(found, weights)
    assert found[SCALE].dtype == np.float32


def test_open_snapshot_turns_float16_into_float32(tmp_path: Path) -> None:
    weights = {name: array.astype(np.float16) for name, array in drawn().items()}
    found = open_snapshot(write_snapshot(tmp_path, REDUCED, weights, "F16")).weights()
    assert same(found, weights)
    assert found[SCALE].dtype == np.float32


@pytest.mark.parametrize("stored", ["F64", "I8"])
def test_open_snapshot_refuses_other_types(tmp_path: Path, stored: str) -> None:
    said = refused(write_snapshot(tmp_path, REDUCED, drawn(), stored))
    assert f"{len(layout(REDUCED))} tensors are of types that are not read (F32, F16, BF16 are): " in said
    assert f".alpha is {stored}" in said


def test_open_snapshot_refuses_a_missing_tensor(tmp_path: Path) -> None:
    said = refused(write_snapshot(tmp_path, REDUCED, without(SCALE)))
    assert f"lacks 1 of the {len(layout(REDUCED))} decoder tensors of the sizes in config.json: {SCALE}; " in said


def test_open_snapshot_names_a_few_of_many_missing_tensors(tmp_path: Path) -> None:
    weights = {name: array for name, array in drawn().items() if ".vq." not in name}
    assert ", decoder.quantizer.rvq_rest.vq.layers.0._codebook.cluster_usage and 29 more; " in refused(
        write_snapshot(tmp_path, REDUCED, weights)
    )


def test_open_snapshot_refuses_an_unknown_tensor_of_the_decoder(tmp_path: Path) -> None:
    name = "decoder.pre_transformer.layers.0.self_attn.q_norm.weight"
    said = refused(write_snapshot(tmp_path, REDUCED, {**drawn(), name: np.ones(32, np.float32)}))
    assert f"has 1 decoder tensors that one of the sizes in config.json does not have: {name}; " in said


def test_open_snapshot_refuses_another_shape(tmp_path: Path) -> None:
    weights = {**drawn(), SCALE: np.ones((4, 2), np.float32)}
    said = refused(write_snapshot(tmp_path, REDUCED, weights))
    assert f"1 tensors have not the sizes in config.json: {SCALE} is [4, 2], not [{REDUCED.hidden_size}]; " in said


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("stored", ["F32", "F16", "BF16"])
def test_weights_refuses_numbers_that_are_not_finite(tmp_path: Path, bad: float, stored: str) -> None:
    weights = drawn()
    weights[SCALE][3] = bad
    folder = write_snapshot(tmp_path, REDUCED, weights, stored)
    assert refused(folder, weights_of).startswith(f"{folder}/model.safetensors: {SCALE} holds NaN or infinity")


def test_open_snapshot_refuses_a_truncated_file(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn())
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert refused(folder).startswith(f"{path}: is no safetensors file, or is damaged (")


@pytest.mark.parametrize(
    "data",
    [b"", b"short", b"\xff" * 64, b"PK\x03\x04" + bytes(200), b"\x02" + bytes(7) + b"[]", b"\x80\x02}q\x00."],
    ids=["empty", "short", "header too long", "zip", "list", "pickle"],
)
def test_open_snapshot_refuses_another_format(tmp_path: Path, data: bytes) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn())
    (folder / "model.safetensors").write_bytes(data)
    assert "model.safetensors: is no safetensors file, or is damaged (" in refused(folder)


def test_open_snapshot_refuses_a_header_whose_places_are_outside_the_file(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn())
    whole = safetensors_bytes({SCALE: np.ones(2, np.float32)})
    (folder / "model.safetensors").write_bytes(whole.replace(b"[0, 8]", b"[0, 9]"))
    assert "is no safetensors file, or is damaged (" in refused(folder)


def test_open_snapshot_tells_a_pointer_of_git_lfs(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn())
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "is a Git LFS pointer, not the file itself; run `git lfs pull`" in refused(folder)


def test_open_snapshot_refuses_a_folder_without_weights(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn())
    (folder / "model.safetensors").unlink()
    assert f"{folder}: there is no model.safetensors in it, and no model.safetensors.index.json" in refused(folder)


def test_open_snapshot_refuses_weights_that_are_a_folder(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn())
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    assert "model.safetensors: is a folder, not a file" in refused(folder)


def test_open_snapshot_refuses_a_missing_shard(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn(), shards=2)
    missing = folder / "model-00002-of-00002.safetensors"
    missing.unlink()
    assert refused(folder).startswith(f"{missing}: there is no such file; ")


def test_open_snapshot_refuses_a_shard_without_a_tensor_that_the_index_puts_there(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn(), shards=2)
    shard = folder / "model-00001-of-00002.safetensors"
    shard.write_bytes(safetensors_bytes({SCALE: np.ones(2, np.float32)}))
    assert refused(folder).startswith(f"{shard}: does not hold decoder.")


@pytest.mark.parametrize(
    "name", ["../model.safetensors", "/etc/a.safetensors", "a/b.safetensors", "model.bin", "..", "a\0.safetensors"]
)
def test_open_snapshot_does_not_follow_an_index_elsewhere(tmp_path: Path, name: str) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn(), shards=1)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(layout(REDUCED), name)}))
    assert f"{index}: names {name!r} as a shard, which is no .safetensors file of its own folder" in refused(folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"decoder.a": 1}}', "\x80"])
def test_open_snapshot_refuses_an_index_that_is_none(tmp_path: Path, text: str) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn(), shards=1)
    index = folder / "model.safetensors.index.json"
    index.write_text(text, encoding="latin-1")
    assert refused(folder).startswith(f"{index}: ")


def test_open_snapshot_refuses_what_is_not_there(tmp_path: Path) -> None:
    assert "there is no such file or folder" in refused(tmp_path / "nowhere")


def test_open_snapshot_refuses_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    assert refused(tmp_path).startswith(f"{tmp_path}: is no snapshot of Qwen3-TTS: there is no speech_tokenizer")


def test_open_snapshot_refuses_a_file_that_it_would_not_read(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, REDUCED, drawn())
    other = folder / "other.safetensors"
    other.write_bytes(b"")
    assert "is neither a folder nor one of config.json, model.safetensors, " in refused(other)


def test_open_snapshot_refuses_a_snapshot_whose_tokenizer_was_not_downloaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_tts"}')
    assert "get the snapshot with its folder speech_tokenizer" in refused(tmp_path)
