from __future__ import annotations

from pathlib import Path

import pytest

from rknn_tts.installed import breakages, differences, installed_versions, pinned_versions, release

GOOD = {"onnx": "1.16.1", "setuptools": "80.10.2", "numpy": "1.26.4"}


def install(folder: Path, name: str, version: str) -> None:
    """Leaves the metadata that an installed package leaves."""
    metadata = folder / "lib" / "python3.11" / "site-packages" / f"{name}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_installed_versions_reads_the_metadata_when_packages_are_there(tmp_path: Path) -> None:
    install(tmp_path, "onnx", "1.16.1")
    install(tmp_path, "ruamel.yaml", "0.19.1")
    assert installed_versions(tmp_path) == {"onnx": "1.16.1", "ruamel-yaml": "0.19.1"}


def test_installed_versions_is_empty_when_there_is_no_environment(tmp_path: Path) -> None:
    assert installed_versions(tmp_path / "no") == {}


def test_pinned_versions_collects_both_when_a_package_depends_on_the_python(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(
        "# a comment\n"
        "scipy==1.15.3 ; python_full_version < '3.11' \\\n    --hash=sha256:00\n"
        "scipy==1.17.1 ; python_full_version >= '3.11' \\\n    --hash=sha256:00\n"
        "ruamel.yaml==0.19.1 \\\n    --hash=sha256:00\n"
    )
    assert pinned_versions(lock) == {"scipy": {"1.15.3", "1.17.1"}, "ruamel-yaml": {"0.19.1"}}


def test_breakages_are_none_when_versions_are_those_of_the_lock() -> None:
    assert breakages(GOOD) == []


@pytest.mark.parametrize(
    ("package", "version", "reason"),
    [
        ("onnx", "1.19.0", "no onnx.mapping"),
        ("onnx", "1.23.2", "no onnx.mapping"),
        ("setuptools", "81.0.0", "no pkg_resources"),
        ("setuptools", "100.1", "no pkg_resources"),
        ("numpy", "2.0.0rc1", "numpy 2"),
    ],
)
def test_breakages_name_the_reason_when_a_version_is_too_new(package: str, version: str, reason: str) -> None:
    (broken,) = breakages(GOOD | {package: version})
    assert (broken.package, broken.found) == (package, version)
    assert reason in broken.reason


@pytest.mark.parametrize(("package", "version"), [("onnx", "1.18.0"), ("setuptools", "80.9"), ("numpy", "1.99")])
def test_breakages_are_none_when_a_version_is_just_below_the_limit(package: str, version: str) -> None:
    assert breakages(GOOD | {package: version}) == []


def test_breakages_name_the_package_when_it_is_missing() -> None:
    assert [(broken.package, broken.found) for broken in breakages({"onnx": "1.16.1", "numpy": "1.26.4"})] == [
        ("setuptools", "missing")
    ]


def test_differences_name_both_versions_when_another_is_installed() -> None:
    pins = {"onnx": frozenset({"1.16.1"}), "scipy": frozenset({"1.15.3", "1.17.1"}), "tqdm": frozenset({"4.70.1"})}
    found = dict(differences({"onnx": "1.17.0", "scipy": "1.17.1", "tqdm": "4.70.1"}, pins))
    assert found == {"onnx": "onnx 1.17.0 (locked: 1.16.1)"}


def test_differences_name_a_package_when_it_is_missing() -> None:
    assert dict(differences({}, {"onnx": frozenset({"1.16.1"})})) == {"onnx": "onnx is missing (locked: 1.16.1)"}


@pytest.mark.parametrize(
    ("version", "numbers"), [("1.19.0", (1, 19, 0)), ("2.0.0rc1", (2, 0, 0)), ("81", (81,)), ("unknown", ())]
)
def test_release_gives_the_leading_numbers_when_a_version_is_read(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers
