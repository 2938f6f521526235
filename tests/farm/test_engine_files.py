from __future__ import annotations

from pathlib import Path

import pytest

from contracts.files import sha256_of
from farm import engine_files
from farm.engine_files import Damaged, checked_manifest
from farm.outcomes import MadeFile
from tests.rknn_tts.built_engines import write_engine


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    return write_engine(tmp_path, "one", "piper.decoder")


def checked(engine: Path, after_ns: int) -> str:
    """The digest that is found where the outcome was written `after_ns` after the engine."""
    stat = engine.stat()
    made = MadeFile(engine.name, sha256_of(engine), stat.st_size)
    return checked_manifest(engine.parent, engine.name, made, stat.st_mtime_ns + after_ns).engine.sha256


def test_engine_is_not_read_when_it_is_older_than_the_outcome(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Path] = []

    def counted(path: Path) -> str:
        found.append(path)
        return sha256_of(path)

    monkeypatch.setattr(engine_files, "sha256_of", counted)
    assert checked(engine, 0) == sha256_of(engine)
    assert found == []
    assert checked(engine, -1) == sha256_of(engine)
    assert found == [engine]


def test_engine_of_another_size_is_damaged_however_old_it_is(engine: Path) -> None:
    made = MadeFile(engine.name, sha256_of(engine), engine.stat().st_size)
    engine.write_bytes(b"RKNN")
    told = f"is not the engine that its manifest tells of .its digest is {sha256_of(engine)[:16]}"
    with pytest.raises(Damaged, match=told):
        checked_manifest(engine.parent, engine.name, made, engine.stat().st_mtime_ns)


def test_outcome_with_another_digest_than_the_manifests_is_damaged(engine: Path) -> None:
    made = MadeFile(engine.name, "ab" * 32, engine.stat().st_size)
    with pytest.raises(Damaged, match="its digest is abababab"):
        checked_manifest(engine.parent, engine.name, made, engine.stat().st_mtime_ns)
