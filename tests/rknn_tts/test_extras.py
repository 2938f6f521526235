from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from contracts.errors import UserInput
from environments.locks import parse_name
from environments.stamp import write_stamp
from environments.trouble import Trouble
from rknn_tts import extras
from rknn_tts.extras import ensure_extras, pinned_text


class Heard:
    """A `Say` that remembers."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, text: str) -> None:
        self.steps.append(text)

    def note(self, text: str) -> None:
        raise AssertionError(text)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose environment, without extras, is the one that this process seems to run in."""
    checkout = tmp_path.resolve() / "checkout"
    (checkout / "requirements").mkdir(parents=True)
    (checkout / "requirements" / "toolchain.txt").write_text("# Size: 320 MB\nrich==15.0.0 --hash=sha256:00\n")
    (checkout / "requirements" / "torch.txt").write_text("# Size: 850 to 5000 MB\ntorch==2.13.0\n")
    wanted = parse_name(checkout, "toolchain")
    wanted.python.parent.mkdir(parents=True)
    wanted.python.write_text("#!/bin/sh\necho 'ERROR: [Errno 28] No space left on device'\nexit 1\n")
    wanted.python.chmod(0o755)
    site(checkout).mkdir(parents=True)
    write_stamp(wanted.folder, "/usr/bin/python3.11", [(lock.name, lock.digest) for lock in wanted.locks])
    monkeypatch.setattr(extras, "ROOT", checkout)
    monkeypatch.setattr(sys, "prefix", str(wanted.folder))
    monkeypatch.delenv("PYTHON", raising=False)
    return checkout


def site(root: Path) -> Path:
    return root / ".venv" / "lib" / "python3.11" / "site-packages"


def install(root: Path, version: str, name: str = "torch") -> None:
    metadata = site(root) / f"{name}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (site(root) / "stand_in_for_torch.py").write_text("here = True\n")


HUB = """# Size: 30 MB
filelock==4.1.0 ; python_full_version < '3' and sys_platform == 'linux' \\
    --hash=sha256:00
filelock==4.3.1 ; python_full_version >= '3' and sys_platform == 'linux' \\
    --hash=sha256:00
huggingface-hub==0.36.2 ; python_full_version < '4' and sys_platform == 'linux' \\
    --hash=sha256:00
old-tomli==2.0.0 ; python_full_version < '3' \\
    --hash=sha256:00
"""


@pytest.fixture
def hub(root: Path) -> Path:
    """The checkout with a lock of several packages, of which one is for other Pythons and one depends on the Python."""
    (root / "requirements" / "hub.txt").write_text(HUB)
    return root


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu"])
def test_ensure_extras_does_nothing_when_they_are_installed(root: Path, version: str) -> None:
    install(root, version)
    heard = Heard()
    ensure_extras(frozenset({"torch"}), heard)
    ensure_extras(frozenset(), heard)
    assert heard.steps == []


def test_ensure_extras_does_nothing_when_all_that_this_python_needs_is_installed(hub: Path) -> None:
    install(hub, "4.3.1", "filelock")
    install(hub, "0.36.2", "huggingface_hub")
    heard = Heard()
    ensure_extras({"hub"}, heard)
    assert heard.steps == []


@pytest.mark.parametrize(
    "there",
    [
        {},
        {"filelock": "4.3.1"},
        {"huggingface_hub": "0.36.2"},
        {"filelock": "4.1.0", "huggingface_hub": "0.36.2"},
        {"filelock": "4.3.1", "huggingface_hub": "1.2.0"},
    ],
)
def test_ensure_extras_adds_an_extra_when_a_package_of_it_is_missing_or_another(
    hub: Path, there: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in there.items():
        install(hub, version, name)
    asked: list[str] = []

    def add_extras(where: Path, name: str) -> None:
        asked.append(name)
        for old in site(hub).glob("*.dist-info"):
            (old / "METADATA").unlink()
            old.rmdir()
        install(hub, "4.3.1", "filelock")
        install(hub, "0.36.2", "huggingface_hub")

    monkeypatch.setattr(extras, "add_extras", add_extras)
    ensure_extras({"hub"}, Heard())
    assert asked == ["toolchain+hub"]


def test_ensure_extras_names_the_lock_when_the_environment_is_not_ours_and_it_pins_several(
    hub: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(UserInput, match=r"^what \S+/requirements/hub\.txt pins is needed, .* install it there$"):
        ensure_extras({"hub"}, Heard())


def test_ensure_extras_makes_a_package_importable_in_the_running_process(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(site(root)))
    assert importlib.util.find_spec("stand_in_for_torch") is None
    asked: list[tuple[Path, str]] = []

    def add_extras(where: Path, name: str) -> None:
        asked.append((where, name))
        install(root, "2.13.0+cpu")

    monkeypatch.setattr(extras, "add_extras", add_extras)
    heard = Heard()
    ensure_extras(frozenset({"torch"}), heard)
    assert asked == [(root, "toolchain+torch")]
    assert heard.steps == ["adding torch to the environment"]
    assert importlib.util.find_spec("stand_in_for_torch") is not None


def test_ensure_extras_says_why_in_one_sentence_when_pip_fails(root: Path) -> None:
    with pytest.raises(UserInput, match="the disk is full") as caught:
        ensure_extras(frozenset({"torch"}), Heard())
    assert "\n" not in str(caught.value)
    assert not (root / ".venv" / "rknn-tts-unfinished").exists()


def test_ensure_extras_says_what_to_install_when_the_environment_is_not_ours(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(UserInput, match=r"torch==2\.13\.0 is needed, .* install it there"):
        ensure_extras(frozenset({"torch"}), Heard())


def test_ensure_extras_says_what_to_do_when_a_package_was_removed_from_a_finished_environment(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "add_extras", lambda where, name: None)
    with pytest.raises(UserInput, match=r"torch is missing \(locked: 2\.13\.0\): remove it and run `environments/run"):
        ensure_extras(frozenset({"torch"}), Heard())


def test_ensure_extras_passes_on_what_the_set_up_says(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(where: Path, name: str) -> None:
        raise Trouble("the package index cannot be reached: check the network")

    monkeypatch.setattr(extras, "add_extras", offline)
    with pytest.raises(UserInput, match=r"^the package index cannot be reached: check the network$"):
        ensure_extras(frozenset({"torch"}), Heard())


def test_pinned_text_gives_what_the_locks_pin(root: Path) -> None:
    assert pinned_text(frozenset({"torch"})) == "torch==2.13.0"
    assert pinned_text(frozenset()) == ""
