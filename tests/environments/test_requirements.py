"""The locks of this repository themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from environments.locks import read_lock
from tests.environments.stubs import REPOSITORY

LOCKS = sorted((REPOSITORY / "requirements").glob("*.txt"))
LOCKS = [path for path in LOCKS if path.name not in ("rknn-overrides.txt", "torch.txt")]


def pins(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+) ", path.read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def test_locks_are_those_that_the_commands_use_when_listed() -> None:
    assert {"toolchain.txt", "dev.txt", "rknn-2.3.2.txt"} <= {path.name for path in LOCKS}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_lock_pins_and_hashes_every_package_when_read(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"^# Size: \d+ MB$", text, re.MULTILINE)
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).strip())
    for entry in entries:
        assert re.match(r"[\w.-]+==[\w.]+ ;", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_dev_lock_agrees_with_the_toolchain_when_both_have_a_package() -> None:
    toolchain, dev = pins(REPOSITORY / "requirements/toolchain.txt"), pins(REPOSITORY / "requirements/dev.txt")
    shared = toolchain.keys() & dev.keys()
    assert shared
    assert {name: toolchain[name] for name in shared} == {name: dev[name] for name in shared}


def test_torch_is_a_plain_pin_of_one_release() -> None:
    lock = read_lock(REPOSITORY, "torch")
    assert (lock.pins, lock.hashed) == (("torch==2.13.0",), False)
    assert "://" not in lock.path.read_text()


def test_references_bring_nothing_that_the_originals_depend_on() -> None:
    assert pins(REPOSITORY / "requirements/references.txt").keys() == {"kokoro", "attrs"}


@pytest.mark.parametrize("path", [path for path in LOCKS if path.name.startswith("rknn")], ids=lambda path: path.name)
def test_toolkit_lock_keeps_the_undeclared_limits_when_read(path: Path) -> None:
    packages = pins(path)
    assert packages["rknn-toolkit2"] == {path.stem.removeprefix("rknn-")}
    assert all(release(version) < (1, 19) for version in packages["onnx"])
    assert all(release(version) < (81,) for version in packages["setuptools"])
    assert all(release(version) < (2,) for version in packages["numpy"])
    assert "torch" not in packages
    assert "opencv-python" not in packages
