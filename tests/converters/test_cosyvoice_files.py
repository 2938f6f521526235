"""What `--checkpoint` may name for a stage of CosyVoice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from contracts.errors import UserInput
from converters.cosyvoice_files import ESTIMATOR, FLOW, locator

FILES = (FLOW, ESTIMATOR)
LOCATE = locator("cosyvoice3", "flow", FILES, "1: depth 22", frozenset({"torch"}))


def no_hub(reference: str, patterns: Sequence[str]) -> Path:
    raise AssertionError(f"{reference} was fetched")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    for name in (*FILES, "hift.pt"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_of_a_folder_the_best_file_is_read(release: Path) -> None:
    found = LOCATE(str(release), no_hub)
    assert (found.path, found.files) == (release / FLOW, (release / FLOW,))
    assert found.source.sha256 == hashlib.sha256(FLOW.encode()).hexdigest()
    assert found.extras == {"torch"}
    (release / FLOW).unlink()
    assert LOCATE(str(release), no_hub).path == release / ESTIMATOR


def test_a_file_may_have_any_name(release: Path) -> None:
    other = (release / FLOW).rename(release / "distilled.pt")
    assert LOCATE(str(other), no_hub).source.name == "distilled.pt"


def test_what_is_made_of_a_release_is_called_after_it(tmp_path: Path) -> None:
    release = tmp_path / "CosyVoice3-0.5B"
    release.mkdir()
    for name in FILES:
        (release / name).write_bytes(b"0")
    assert LOCATE(str(release), no_hub).source.name == "CosyVoice3-0.5B.pt"
    assert LOCATE(str(release / ESTIMATOR), no_hub).source.name == "CosyVoice3-0.5B.onnx"
    snapshot = tmp_path / "models--them--CosyVoice3" / "snapshots" / "ab12"
    snapshot.mkdir(parents=True)
    (snapshot / FLOW).write_bytes(b"0")
    assert LOCATE("hf://them/CosyVoice3", lambda *_: snapshot).source.name == "CosyVoice3.pt"


def test_of_a_place_on_a_hub_no_file_is_fetched_but_the_best_that_it_has(release: Path) -> None:
    asked: list[tuple[str, Sequence[str]]] = []

    def fetch(reference: str, patterns: Sequence[str]) -> Path:
        asked.append((reference, tuple(patterns)))
        return release

    place = "hf://them/CosyVoice3"
    assert LOCATE(place, fetch).path == release / FLOW
    assert asked == [(place, (FLOW,))]
    (release / FLOW).unlink()
    assert LOCATE(place, fetch).path == release / ESTIMATOR
    assert asked[1:] == [(place, (FLOW,)), (place, (f"{ESTIMATOR}*",))]  # and its external data
    (release / ESTIMATOR).unlink()
    with pytest.raises(UserInput, match=f"{place}: holds no flow.pt or flow.decoder.estimator.fp32.onnx"):
        LOCATE(place, fetch)


def test_random_is_marked_and_of_its_own_digest() -> None:
    found = LOCATE("random", no_hub)
    assert (found.source.kind, found.files) == ("random", ())
    assert "stand-in" in found.note
    other = locator("cosyvoice3", "flow", FILES, "2: depth 22", frozenset())("random", no_hub)
    assert other.source.sha256 != found.source.sha256


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "holds no flow.pt or flow.decoder.estimator.fp32.onnx."),
        ("none", "there is no such file or folder; flow.pt or flow.decoder.estimator.fp32.onnx is read, or random."),
        ("hift.bin", "ends in none of .onnx, .pt; flow.pt or flow.decoder.estimator.fp32.onnx is read."),
    ],
)
def test_what_is_none_is_refused_by_name(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "hift.bin").write_bytes(b"0")
    path = str(tmp_path / name)
    with pytest.raises(UserInput) as error:
        LOCATE(path, no_hub)
    assert str(error.value) == f"--checkpoint {path}: {says}"
