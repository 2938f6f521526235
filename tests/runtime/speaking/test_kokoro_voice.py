"""Voices as they are published and kept: what is read is what the toolchain reads, and nothing in a file is run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking import kokoro_voice
from rknn_tts_runtime.speaking.kokoro_voice import NamedVoice, read_voice, style_for

from converters.kokoro.voices import read_voices, style_of, tokens_of
from tests.kokoro_writer.speaking import VOICE_NAMES, write_voices
from tests.mutations import mutations

SIZE = 4
STYLES = np.arange(12, dtype=np.float32).reshape(3, 1, SIZE)
"""Of a voice that knows sentences of one to three phonemes."""


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("af_heart.npy", npy(STYLES)),
        ("af_heart.npy", npy(STYLES[:, 0])),
        ("af_heart.npy", npy(STYLES.astype(np.float64))),
        ("af_heart.npy", npy(STYLES.astype(np.float16))),
        ("af_heart.npy", npy(STYLES.astype(">f4"))),
        ("af_heart.bin", STYLES.tobytes()),
        ("voices.npz", npz(af_heart=STYLES)),
        ("voices-v1.0.bin", npz(af_heart=STYLES)),
    ],
)
def test_a_file_of_one_voice_is_that_voice(tmp_path: Path, name: str, content: bytes) -> None:
    found = read_voice(written(tmp_path, name, content), SIZE)
    assert found.name == "af_heart"
    assert found.styles.dtype == np.float32
    assert found.styles.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_a_voice_of_several_is_read_by_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, "voices.npz", npz(one=STYLES, two=STYLES + 100))
    assert read_voice(Path(f"{path}:two"), SIZE).styles[0].tolist() == [100, 101, 102, 103]


def test_a_file_whose_name_has_a_colon_is_read_as_it_is_called(tmp_path: Path) -> None:
    assert read_voice(written(tmp_path, "a:one.npy", npy(STYLES)), SIZE).name == "a:one"


@pytest.mark.parametrize("phonemes", [0, 1, 2, 299, 300, 301])
@pytest.mark.parametrize("name", VOICE_NAMES)
def test_style_is_the_one_that_the_toolchain_speaks_with(tmp_path: Path, name: str, phonemes: int) -> None:
    path = write_voices(tmp_path)
    theirs = read_voices(path)
    wanted = style_of(name, tokens_of("a" * phonemes, theirs), theirs)
    found = style_for(read_voice(Path(f"{path}:{name}"), 8), phonemes)
    assert found.shape == (1, 8)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(("phonemes", "first"), [(0, 0), (1, 0), (2, 4), (3, 8), (4, 8)])
def test_style_is_the_one_for_that_many_phonemes(phonemes: int, first: int) -> None:
    assert style_for(NamedVoice("one", STYLES[:, 0]), phonemes)[0, 0] == first


def headed(shape: str, dtype: str = "<f4", by_columns: str = "False") -> bytes:
    """An array's header that says so, and a little data."""
    text = f"{{'descr': '{dtype}', 'fortran_order': {by_columns}, 'shape': {shape}, }}"
    padded = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode() + bytes(48)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("v.npy", npy(np.zeros((3, 1, 5), np.float32)), r"v\.npy: has the shape \[3, 1, 5\], expected \[L, 1, 4\]"),
        ("v.npy", npy(np.zeros((0, 1, 4), np.float32)), r"has the shape \[0, 1, 4\]"),
        ("v.npy", npy(np.zeros(4, np.float32)), r"has the shape \[4\]"),
        ("v.npy", npy(np.float32(1)), r"has the shape \[\]"),
        ("v.npy", npy(np.zeros((3, 4), np.int64)), "holds int64, expected float32"),
        ("v.npy", npy(np.zeros((3, 4), np.complex64)), "holds complex64"),
        ("v.npy", npy(np.asfortranarray(np.ones((3, 4), np.float32))), "by columns"),
        ("v.npy", npy(np.array([{"an": "object"}], dtype=object), allow_pickle=True), "holds object"),
        ("v.npy", npy(STYLES)[:-4], "is not as long as its header says"),
        ("v.npy", npy(STYLES)[:20], "is no array that can be read"),
        ("v.npy", headed("(1000000000000, 4)"), r"has the shape \[1000000000000, 4\]"),
        ("v.npy", headed("(4096, 4)"), "is not as long as its header says"),
        ("v.npy", headed("(-1, 4)"), r"has the shape \[-1, 4\]"),
        ("v.npy", headed("(3, 1, 4", ""), "is no array that can be read"),
        ("v.npy", b"\x93NUMPY\x09\x00" + npy(STYLES)[8:], "is no array that can be read"),
        ("v.npy", npy(np.where(STYLES == 5, np.nan, STYLES)), "numbers that are not finite"),
        ("v.bin", STYLES.tobytes()[:-1], r"v\.bin: has 47 bytes and is no voice: a raw one has a multiple of 16"),
        ("v.bin", b"", "has 0 bytes and is no voice"),
        ("v.bin", bytes(16 * 4097), "is no voice"),
        ("v.npz", npz(), "has 0 voices: none"),
        ("v.npz", npz(one=STYLES, two=STYLES), r"has 2 voices: one, two; name one: --voice v\.npz:NAME"),
        ("v.npz", b"PK\x03\x04 and no archive", "is damaged"),
        ("v.npz", npz(one=np.zeros((5000, 4), np.float64)), r"v\.npz:one: is larger than any voice"),
        ("v.pt", b"\x80\x02}q\x00.", r"v\.pt: is a file of torch.*make an \.npy of it"),
    ],
)
def test_what_is_no_voice_is_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        read_voice(written(tmp_path, name, content), SIZE)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("v.npz:three", r"v\.npz: has no voice three; it has: one, two"),
        ("v.npy:one", "has one voice, so none is chosen by name"),
        ("w.npz:one", r"--voice .*w\.npz: there is no such file"),
        ("w.npy", r"--voice .*w\.npy: there is no such file"),
        ("", "there is no such file"),
    ],
)
def test_a_voice_that_is_not_there_is_named(tmp_path: Path, name: str, says: str) -> None:
    written(tmp_path, "v.npz", npz(one=STYLES, two=STYLES))
    written(tmp_path, "v.npy", npy(STYLES))
    with pytest.raises(BadInput, match=says):
        read_voice(tmp_path / name, SIZE)


def test_a_file_of_torch_is_told_how_to_convert(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("af_heart/data.pkl", b"\x80\x02}q\x00.")
    with pytest.raises(BadInput, match=r"weights_only=True"):
        read_voice(written(tmp_path, "af_heart.pt", file.getvalue()), SIZE)


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kokoro_voice, "LARGEST_FILE", 100)
    with pytest.raises(BadInput, match="has 176 bytes, and is no file of voices: those have 100 at most"):
        read_voice(written(tmp_path, "v.npy", npy(STYLES)), SIZE)


@pytest.mark.parametrize("whole", [npz(one=STYLES, two=STYLES), npy(STYLES)], ids=["npz", "npy"])
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, whole: bytes) -> None:
    refuse: Callable[[Path], NamedVoice] = lambda path: read_voice(path, SIZE)  # noqa: E731 - one word for both kinds
    for damaged in mutations(whole, 300):
        path = written(tmp_path, "v.npz", damaged)
        for asked in (path, Path(f"{path}:one")):
            try:
                found = refuse(asked)
            except BadInput:
                continue
            assert found.styles.shape[1] == SIZE
