"""What every test has: none of the user's settings, a cache of its own, and the default voice fetched once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from converters.kokoro.package import KOKORO, VOICES
from converters.piper.decoder import VOICE
from converters.stages import PackagedCheckpoint
from engine.cache import CACHE_FOLDER, default_folder
from engine.environment import CONVERTER_PYTHON
from rknn_tts.packaged import checkpoint_folder, fetch_packaged
from rknn_tts.steps import CHECKPOINTS_FOLDER

OURS = "RKNN_TTS_"
PASSED_ON = ("LD_LIBRARY_PATH",)
"""Not ours, but seen by the toolkit."""


@pytest.fixture(scope="session", autouse=True)
def users_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Takes the user's settings away, and tells where the user's own cache keeps checkpoints: to read, never to write.

    Only `RKNN_TTS_CONVERTER_PYTHON` stays: it says where a machine has its converter.
    """
    with pytest.MonkeyPatch.context() as patch:
        users = default_folder() / CHECKPOINTS_FOLDER
        for name in os.environ:
            if name in PASSED_ON or (name.startswith(OURS) and name != CONVERTER_PYTHON):
                patch.delenv(name)
        patch.setenv(CACHE_FOLDER, str(tmp_path_factory.mktemp("session-cache")))
        yield users


@pytest.fixture(autouse=True)
def own_cache(
    users_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache for this test alone."""
    monkeypatch.setenv(CACHE_FOLDER, str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def fetched_voice(users_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Piper's default voice, to copy into a cache's `checkpoints`: fetched once for all tests."""
    return _fetched(VOICE, users_checkpoints, tmp_path_factory)


@pytest.fixture(scope="session")
def fetched_kokoro(users_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the default Kokoro, to copy into a cache's `checkpoints`: fetched once for all tests."""
    return _fetched(KOKORO, users_checkpoints, tmp_path_factory)


@pytest.fixture(scope="session")
def fetched_kokoro_voices(users_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Kokoro's voices, to copy into a cache's `checkpoints`: fetched once for all tests."""
    return _fetched(VOICES, users_checkpoints, tmp_path_factory)


def _fetched(wanted: PackagedCheckpoint, users: Path, temporary: pytest.TempPathFactory) -> Path:
    """The folder of a default checkpoint. A copy that the user has already is taken over; its digest is checked too."""
    folder = temporary.mktemp("fetched")
    if (theirs := checkpoint_folder(wanted, users)).is_dir():
        shutil.copytree(theirs, checkpoint_folder(wanted, folder))
    return fetch_packaged(wanted, folder, lambda _: None).path.parent
