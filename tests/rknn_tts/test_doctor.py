from __future__ import annotations

import sys
from pathlib import Path

import pytest

from converters.registry import STAGES
from environments.locks import parse_name
from environments.stamp import write_stamp
from rknn_tts.doctor import (
    EXTRAS,
    Finding,
    examine,
    examine_environments,
    examine_extras,
    examine_memory,
    examine_named_converter,
    examine_pythons,
    examine_shadows,
    examine_system,
    examine_variables,
)

RKNN_LOCK = """# Size: 700 MB
rknn-toolkit2==2.3.2 ; x
onnx==1.16.1 ; x
numpy==1.26.4 ; x
setuptools==80.10.2 ; x
"""
GOOD = {"rknn-toolkit2": "2.3.2", "onnx": "1.16.1", "numpy": "1.26.4", "setuptools": "80.10.2"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with two locks and no environment."""
    checkout = tmp_path.resolve() / "checkout"
    (checkout / "requirements").mkdir(parents=True)
    (checkout / "requirements" / "toolchain.txt").write_text("# Size: 320 MB\nrich==15.0.0 ; x\n")
    (checkout / "requirements" / "rknn-2.3.2.txt").write_text(RKNN_LOCK)
    return checkout


def set_up(root: Path, name: str, packages: dict[str, str]) -> None:
    """A finished environment with the metadata of these packages."""
    wanted = parse_name(root, name)
    site = wanted.folder / "lib" / "python3.11" / "site-packages"
    for package, version in packages.items():
        metadata = site / f"{package}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    wanted.python.parent.mkdir()
    wanted.python.write_text("")
    wanted.python.chmod(0o755)
    write_stamp(wanted.folder, "/usr/bin/python3.11", [(lock.name, lock.digest) for lock in wanted.locks])


def about(findings: list[Finding], name: str) -> list[Finding]:
    return [finding for finding in findings if finding.name.startswith(name)]


def test_examine_environments_says_how_to_have_them_when_none_is_set_up(root: Path) -> None:
    toolchain, toolkit = examine_environments(root)
    assert (toolchain.name, toolchain.found, toolchain.status) == (".venv", "not set up yet", "ok")
    assert (toolkit.name, toolkit.status) == (".venv-rknn-2.3.2", "ok")
    assert "about 700 MB" in toolkit.remedy
    assert "make setup" in toolkit.remedy


def test_examine_environments_tells_the_versions_when_one_is_ready(root: Path) -> None:
    set_up(root, "rknn-2.3.2", GOOD)
    (found,) = about(list(examine_environments(root)), ".venv-rknn-2.3.2")
    assert found.status == "ok"
    assert found.found == "ready: rknn-toolkit2 2.3.2, onnx 1.16.1, numpy 1.26.4, setuptools 80.10.2"


def test_examine_environments_says_where_the_converter_is_when_it_stands_outside_the_checkout(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RKNN_TTS_ENVIRONMENTS", str(tmp_path.resolve() / "node"))
    toolchain, toolkit = examine_environments(root)
    assert (toolchain.found, toolkit.found) == ("not set up yet", f"not set up yet in {tmp_path.resolve() / 'node'}")
    set_up(root, "rknn-2.3.2", GOOD)
    (found,) = about(list(examine_environments(root)), ".venv-rknn-2.3.2-")
    assert found.found.startswith(f"ready in {tmp_path.resolve() / 'node'}: rknn-toolkit2 2.3.2, ")
    assert not (root / ".venv-rknn-2.3.2").exists()


def test_examine_environments_reports_it_when_the_folder_outside_the_checkout_is_no_path(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RKNN_TTS_ENVIRONMENTS", "node")
    toolchain, toolkit = examine_environments(root)
    assert (toolchain.status, toolkit.status) == ("ok", "problem")
    assert "RKNN_TTS_ENVIRONMENTS is 'node'" in toolkit.remedy


@pytest.mark.parametrize(
    ("package", "version", "said"),
    [
        ("onnx", "1.19.0", "onnx.mapping"),
        ("setuptools", "81.0.0", "pkg_resources"),
        ("numpy", "2.2.6", "numpy 1"),
    ],
)
def test_examine_environments_reports_a_known_breakage_when_it_is_installed(
    root: Path, package: str, version: str, said: str
) -> None:
    set_up(root, "rknn-2.3.2", GOOD | {package: version})
    _, broken = about(list(examine_environments(root)), ".venv-rknn-2.3.2")
    assert (broken.name, broken.found, broken.status) == (f".venv-rknn-2.3.2: {package}", version, "problem")
    assert said in broken.remedy
    assert "environments/run rknn-2.3.2" in broken.remedy


def test_examine_environments_warns_when_a_package_is_not_the_locked_one(root: Path) -> None:
    set_up(root, "rknn-2.3.2", GOOD | {"onnx": "1.17.0"})
    _, other = about(list(examine_environments(root)), ".venv-rknn-2.3.2")
    assert (other.found, other.status) == ("onnx 1.17.0 (locked: 1.16.1)", "warning")


def test_examine_environments_accepts_numpy_2_when_it_is_the_toolchain(root: Path) -> None:
    set_up(root, "toolchain", {"rich": "15.0.0", "numpy": "2.2.6", "onnx": "1.23.2"})
    assert [finding.status for finding in about(list(examine_environments(root)), ".venv")] == ["ok", "ok"]


def test_examine_environments_warns_when_a_lock_changed(root: Path) -> None:
    set_up(root, "toolchain", {"rich": "15.0.0"})
    (root / "requirements" / "toolchain.txt").write_text("rich==16.0.0\n")
    found = next(iter(examine_environments(root)))
    assert (found.status, found.found) == ("warning", "stale: requirements/toolchain.txt changed")


def test_examine_environments_reports_a_folder_when_somebody_else_made_it(root: Path) -> None:
    (root / ".venv").mkdir()
    (root / ".venv" / "pyvenv.cfg").write_text("")
    assert next(iter(examine_environments(root))).status == "problem"


def add_torch_lock(root: Path) -> None:
    (root / "requirements" / "torch.txt").write_text("# Size: 850 to 5000 MB\ntorch==2.13.0\n")


def test_examine_extras_says_how_to_have_torch_when_the_toolchain_is_ready_without_it(root: Path) -> None:
    set_up(root, "toolchain", {"rich": "15.0.0"})
    add_torch_lock(root)
    (found,) = examine_extras(root)
    assert (found.name, found.found, found.status) == (".venv: torch", "not there yet", "ok")
    assert "(850 to 5000 MB); `environments/run toolchain+torch` adds it now" in found.remedy


@pytest.mark.parametrize(
    ("version", "status", "text"),
    [
        ("2.13.0+cpu", "ok", "torch 2.13.0+cpu"),
        ("2.13.0", "ok", "torch 2.13.0"),
        ("2.12.1", "warning", "torch 2.12.1 (locked: 2.13.0)"),
    ],
)
def test_examine_extras_compares_the_version_when_torch_is_there(
    root: Path, version: str, status: str, text: str
) -> None:
    add_torch_lock(root)
    set_up(root, "toolchain+torch", {"rich": "15.0.0", "torch": version})
    (found,) = examine_extras(root)
    assert (found.status, found.found) == (status, text)


def add_hub_lock(root: Path) -> None:
    lock = "# Size: 30 MB\nhuggingface-hub==0.36.2 ; x\nfilelock==4.3.1 ; x\n"
    (root / "requirements" / "hub.txt").write_text(lock)


def test_examine_extras_says_how_to_have_the_hub_when_only_what_it_shares_is_there(root: Path) -> None:
    set_up(root, "toolchain", {"rich": "15.0.0", "filelock": "4.0.0"})
    add_hub_lock(root)
    (found,) = examine_extras(root)
    assert (found.name, found.found, found.status) == (".venv: hub", "not there yet", "ok")
    assert "(about 30 MB); `environments/run toolchain+hub` adds it now" in found.remedy


@pytest.mark.parametrize(
    ("filelock", "status", "text"),
    [("4.3.1", "ok", "huggingface-hub 0.36.2"), ("4.0.0", "warning", "filelock 4.0.0 (locked: 4.3.1)")],
)
def test_examine_extras_compares_all_versions_when_the_hub_is_there(
    root: Path, filelock: str, status: str, text: str
) -> None:
    add_hub_lock(root)
    set_up(root, "toolchain+hub", {"rich": "15.0.0", "huggingface_hub": "0.36.2", "filelock": filelock})
    (found,) = examine_extras(root)
    assert (found.status, found.found) == (status, text)


def test_examine_extras_finds_nothing_when_there_is_no_environment_yet(root: Path) -> None:
    add_torch_lock(root)
    assert list(examine_extras(root)) == []


def test_extras_are_all_that_stages_ask_for() -> None:
    assert {extra for stage in STAGES for extra in stage.extras | stage.text_extras} <= EXTRAS.keys()


def test_examine_named_converter_reports_a_breakage_when_the_named_one_has_it(root: Path) -> None:
    set_up(root, "rknn-2.3.2", GOOD | {"setuptools": "82.0"})
    python = str(root / ".venv-rknn-2.3.2" / "bin" / "python")
    named, broken = examine_named_converter({"RKNN_TTS_CONVERTER_PYTHON": python})
    assert (named.found.startswith(f"{python}: rknn-toolkit2 2.3.2"), named.status) == (True, "ok")
    assert (broken.found, broken.status) == ("82.0", "problem")


def test_examine_named_converter_reports_a_problem_when_it_does_not_exist() -> None:
    (found,) = examine_named_converter({"RKNN_TTS_CONVERTER_PYTHON": "/no/python"})
    assert (found.found, found.status) == ("/no/python", "problem")


def test_examine_named_converter_finds_nothing_when_none_is_named() -> None:
    assert list(examine_named_converter({})) == []


def test_examine_shadows_finds_nothing_when_the_folder_is_clean(tmp_path: Path) -> None:
    (tmp_path / "onnx_models").mkdir()
    (tmp_path / "cv2.txt").write_text("")
    assert list(examine_shadows(tmp_path)) == []


@pytest.mark.parametrize(("name", "folder"), [("onnx", True), ("rknn", True), ("cv2.py", False), ("onnx.py", False)])
def test_examine_shadows_warns_when_a_module_is_hidden(tmp_path: Path, name: str, folder: bool) -> None:
    path = tmp_path / name
    if folder:
        path.mkdir()
    else:
        path.write_text("")
    (found,) = examine_shadows(tmp_path)
    assert (found.found, found.status) == (str(path), "warning")
    assert "rename it" in found.remedy


def test_examine_system_reports_a_problem_when_it_is_not_linux_x86_64() -> None:
    assert examine_system("linux", "x86_64", "glibc 2.31").status == "ok"
    assert examine_system("linux", "aarch64", "glibc 2.31").status == "problem"


def test_examine_pythons_is_ok_when_one_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    found = examine_pythons({"PATH": str(tmp_path)})
    assert found.status == "ok"
    assert ".".join(str(part) for part in sys.version_info[:3]) in found.found


def test_examine_pythons_reports_a_problem_when_there_is_none(tmp_path: Path) -> None:
    found = examine_pythons({"PATH": str(tmp_path)})
    assert (found.found, found.status) == ("none", "problem")
    assert "3.10, 3.11 or 3.12" in found.remedy


def test_examine_variables_warns_when_pythonpath_is_set() -> None:
    (found,) = examine_variables({"PYTHONPATH": "/opt/ros", "PYTHONHOME": ""})
    assert (found.name, found.found, found.status) == ("PYTHONPATH", "/opt/ros", "warning")


@pytest.mark.parametrize(
    ("available_kb", "limit_bytes", "status", "said"),
    [
        (8_000_000, 16 * 10**9, "ok", "8192 MB"),
        (8_000_000, 536_870_912, "problem", "536 MB"),
        (1_500_000, 16 * 10**9, "warning", "1536 MB"),
        (500_000, 16 * 10**9, "problem", "512 MB"),
    ],
)
def test_examine_memory_takes_the_smaller_when_a_container_limits_it(
    tmp_path: Path, available_kb: int, limit_bytes: int, status: str, said: str
) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:   {available_kb} kB\n")
    found = examine_memory(tmp_path / "meminfo", limit_bytes)
    assert found.status == status
    assert said in found.found


def test_examine_memory_warns_when_the_system_does_not_say(tmp_path: Path) -> None:
    assert examine_memory(tmp_path / "no", 10**10).status == "warning"


def test_examine_looks_at_everything_when_called(root: Path, tmp_path: Path) -> None:
    findings = examine(root, tmp_path, {"PATH": str(tmp_path)})
    names = [finding.name for finding in findings]
    assert names == ["system", "Python", ".venv", ".venv-rknn-2.3.2", "disk", "memory"]
    assert all(finding.remedy for finding in findings if finding.status != "ok")
