from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import requests
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from contracts.errors import UserInput
from rknn_tts.hub import fetch_hub

FILES = {
    "onnx/decode.onnx": "a graph",
    "onnx/decode.onnx.data": "its data",
    "model.pth": "weights",
    "README.md": "text",
}
PATTERNS = ("onnx/decode.onnx*", "config.json")

Calls = list[dict[str, Any]]


def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str]) -> Calls:
    """A hub with one repository of these files, and what is asked of it."""
    calls: Calls = []

    def download(repository: str, *, revision: object, cache_dir: object, allow_patterns: list[str]) -> str:
        calls.append({"repository": repository, "revision": revision, "cache": cache_dir})
        for name, text in files.items():
            if any(fnmatch.fnmatch(name, pattern) for pattern in allow_patterns):
                path = tmp_path / "hub" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        (tmp_path / "hub").mkdir(exist_ok=True)
        return str(tmp_path / "hub")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return calls


def fetched(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def download(*_args: object, **_options: object) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)


def refused(reference: str) -> str:
    with pytest.raises(UserInput) as caught:
        fetch_hub(reference, PATTERNS)
    said = str(caught.value)
    assert said.startswith(f"{reference}: ")
    assert said.endswith(".")
    assert "\n" not in said
    return said


def test_fetch_hub_gets_the_files_that_match_and_no_others(monkeypatch: Any, tmp_path: Path) -> None:
    calls = serve(monkeypatch, tmp_path, FILES)
    folder = fetch_hub("hf://owner/Inflect-Micro-v2", PATTERNS)
    assert fetched(folder) == ["onnx/decode.onnx", "onnx/decode.onnx.data"]
    assert calls == [{"repository": "owner/Inflect-Micro-v2", "revision": None, "cache": None}]


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/3", "5d83992436eae1d760afd27aff78a71d676296fc"])
def test_fetch_hub_asks_for_a_revision(monkeypatch: Any, tmp_path: Path, revision: str) -> None:
    calls = serve(monkeypatch, tmp_path, FILES)
    fetch_hub(f"hf://a/b@{revision}", PATTERNS, tmp_path / "cache")
    assert calls == [{"repository": "a/b", "revision": revision, "cache": tmp_path / "cache"}]


@pytest.mark.parametrize(
    "reference", ["hf://", "hf://a", "hf://a/b/c", "hf://a/b@", "hf://../b", "hf://a/b@../c", "hf://a/b c", "hf://a/-b"]
)
def test_fetch_hub_refuses_what_names_no_repository(monkeypatch: Any, tmp_path: Path, reference: str) -> None:
    calls = serve(monkeypatch, tmp_path, FILES)
    assert "is written hf://OWNER/REPO or hf://OWNER/REPO@REVISION" in refused(reference)
    assert not calls


def told(kind: Callable[..., Exception], status: int) -> Exception:
    response = requests.Response()
    response.status_code = status
    return kind("a line\nand a page", response=response)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            LocalEntryNotFoundError("offline"),
            "the hub cannot be reached, and its cache does not hold this; --checkpoint",
        ),
        (told(RepositoryNotFoundError, 404), "there is no such repository on the hub, or it is private"),
        (told(GatedRepoError, 403), "is open only to those whom its owner has given access"),
        (told(RevisionNotFoundError, 404), "the repository has no revision 'x'; name one that it has"),
        (told(HfHubHTTPError, 503), "cannot be fetched (HfHubHTTPError: a line); try again, or note that --checkpoint"),
        (requests.ConnectionError("reset"), "cannot be fetched (ConnectionError: reset)"),
        (OSError(28, "No space left on device"), "cannot be fetched (OSError: [Errno 28] No space left on device)"),
        (HFValidationError("bad name"), "cannot be fetched (HFValidationError: bad name)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_fetch_hub_says_in_a_sentence_what_failed(monkeypatch: Any, error: Exception, said: str) -> None:
    failing(monkeypatch, error)
    assert refused("hf://a/b@x").removeprefix("hf://a/b@x: ").startswith(said)


def test_fetch_hub_finds_nothing_offline_in_an_empty_cache(monkeypatch: Any, tmp_path: Path) -> None:
    """By huggingface_hub itself."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserInput, match=r"hf://a/b: the hub cannot be reached, and its cache does not hold this"):
        fetch_hub("hf://a/b", PATTERNS, tmp_path)


def test_fetch_hub_finds_offline_what_its_cache_holds(monkeypatch: Any, tmp_path: Path) -> None:
    """By huggingface_hub itself, in the cache's layout."""
    commit = "5d83992436eae1d760afd27aff78a71d676296fc"
    root = tmp_path / "models--a--b"
    snapshot = root / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert fetch_hub("hf://a/b", PATTERNS, tmp_path) == snapshot


def test_fetch_hub_says_that_its_client_is_not_installed(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "huggingface_hub is not installed in this environment" in refused("hf://a/b")
