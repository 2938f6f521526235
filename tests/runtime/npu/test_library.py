from __future__ import annotations

import platform
import struct
from pathlib import Path

import pytest
from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.npu import library as module
from rknn_tts_runtime.npu.library import Library, version_in

from tests.runtime.npu.fake_npu import VERSION, compiled_library

OTHER_MACHINE = ("x86_64", 62) if platform.machine() == "aarch64" else ("aarch64", 183)
"""One that this is not, with its number in an ELF header."""


def elf_header(machine: int) -> bytes:
    return b"\x7fELF" + bytes([2, 1, 1]).ljust(12, b"\0") + struct.pack("<HH", 3, machine) + bytes(44)


def test_named_library_is_loaded_and_names_its_version(fake_library: Path) -> None:
    library = Library(fake_library)
    assert (library.path, library.file_version) == (fake_library, VERSION)


def test_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"librknnrt\.so: there is no such library"):
        Library(tmp_path / "librknnrt.so")
    with pytest.raises(BadInput, match="there is no such library"):
        Library(tmp_path / ("a" * 256))


def test_library_that_is_not_installed_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMES", ("librknnrt-that-is-not-there.so", "/nowhere/librknnrt.so"))
    sentence = r"librknnrt\.so cannot be loaded .* not installed here.*--backend onnx"
    with pytest.raises(RunFault, match=sentence) as caught:
        Library()
    assert caught.value.code is None


def test_library_is_found_by_the_loader(fake_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMES", ("librknnrt-that-is-not-there.so", str(fake_library)))
    assert Library().path == fake_library


def test_file_of_a_library_found_by_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._path_of("libc.so.6").is_absolute()


def test_library_of_another_machine_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "librknnrt.so"
    path.write_bytes(elf_header(OTHER_MACHINE[1]))
    sentence = rf"{path}: is for {OTHER_MACHINE[0]}; this machine is {platform.machine()}"
    with pytest.raises(RunFault, match=sentence):
        Library(path)
    monkeypatch.setattr(module, "NAMES", ("librknnrt-that-is-not-there.so", str(path)))
    with pytest.raises(RunFault, match=rf"cannot be loaded on this {platform.machine()} machine: {path}: is for"):
        Library()


def test_library_for_arm_is_of_an_armv7l(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "armv7l")
    path = tmp_path / "librknnrt.so"
    path.write_bytes(elf_header(40))  # EM_ARM: the loader here refuses it, but not for its machine by that name
    with pytest.raises(RunFault, match=rf"^{path}: (?!is for)"):
        Library(path)


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF"])
def test_file_that_is_no_library_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "librknnrt.so"
    path.write_bytes(content)
    with pytest.raises(RunFault, match="is no shared library"):
        Library(path)


def test_damaged_library_of_this_machine_carries_the_loaders_reason(fake_library: Path, tmp_path: Path) -> None:
    path = tmp_path / "librknnrt.so"
    path.write_bytes(fake_library.read_bytes()[:100])
    with pytest.raises(RunFault, match=rf"^{path}: \w"):
        Library(path)


def test_function_that_an_old_library_lacks_is_named(tmp_path: Path) -> None:
    path = compiled_library(tmp_path, "old.so", "-DWITHOUT_CORE_MASK", "-DWITHOUT_ZERO_COPY")
    with pytest.raises(RunFault, match=r"old\.so \(version 2\.3\.2 .*\): has no rknn_set_core_mask; it is too old"):
        Library(path)


def test_function_that_only_zero_copy_needs_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    library = Library(compiled_library(tmp_path, "older.so", "-DWITHOUT_ZERO_COPY"))
    with pytest.raises(RunFault, match=r"has no rknn_create_mem, .*rknn_mem_sync; zero-copy needs a newer"):
        library.bind_zero_copy()


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (b"..librknnrt version: 1.5.0 (e6fe0c678@2023-05-25T08:09:20)\0more", "1.5.0 (e6fe0c678@2023-05-25T08:09:20)"),
        (b"librknnrt version: 2.0.0b0\0", "2.0.0b0"),
        (b"librknnrt version: %s\0", None),
        (b"nothing of it", None),
        (b"", None),
    ],
)
def test_version_in_a_librarys_file(tmp_path: Path, content: bytes, version: str | None) -> None:
    path = tmp_path / "librknnrt.so"
    path.write_bytes(content)
    assert version_in(path) == version


def test_version_of_a_file_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    assert version_in(tmp_path / "librknnrt.so") is None
