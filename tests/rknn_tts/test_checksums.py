from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from contracts.errors import UserInput
from rknn_tts.checksums import SUMS, check_sums_place, read_sums, sums_text, with_sums
from rknn_tts.publish import publish

NAMES = ["b.rknn", "a.json", "with space.onnx", "back\\slash", "new\nline"]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    """What sha256sum itself says of the folder's list."""
    return subprocess.run(
        ["sha256sum", "--strict", "-c", SUMS], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


def test_sums_are_what_sha256sum_prints(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(name)
    printed = subprocess.run(
        ["sha256sum", "--", *sorted(NAMES)], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    digests = {name: digest(name.encode()) for name in NAMES}
    assert sums_text(digests) == printed.stdout
    assert read_sums(printed.stdout) == digests


@pytest.mark.parametrize("text", ["{}", "ab  name\n", f"{'a' * 64} name\n", f"{'a' * 64}  name\n\n{'b' * 64}  \n"])
def test_what_is_no_list_is_told(text: str) -> None:
    assert read_sums(text) is None


def test_a_folder_that_begins_a_list_can_be_checked(tmp_path: Path) -> None:
    folder, logs = tmp_path / "engines", tmp_path / "logs"
    folder.mkdir()
    logs.mkdir()
    files = [(folder / "b.rknn", b"engine"), (logs / "b.layers.json", b"[]"), (folder / "a.json", b"{}")]
    publish(with_sums(files, folder))
    assert (folder / SUMS).read_text() == f"{digest(b'{}')}  a.json\n{digest(b'engine')}  b.rknn\n"
    assert checked(folder).returncode == 0
    assert not (logs / SUMS).exists()


def test_what_is_written_later_is_entered_and_what_went_is_left_out(tmp_path: Path) -> None:
    publish(with_sums([(tmp_path / name, name.encode()) for name in ("a", "b", "c")], tmp_path))
    (tmp_path / "b").unlink()
    publish(with_sums([(tmp_path / "a", b"other"), (tmp_path / "d", b"new")]))
    assert read_sums((tmp_path / SUMS).read_text()) == {"a": digest(b"other"), "c": digest(b"c"), "d": digest(b"new")}
    assert checked(tmp_path).returncode == 0


def test_a_file_that_was_damaged_is_still_found_after_another_was_written(tmp_path: Path) -> None:
    publish(with_sums([(tmp_path / name, name.encode()) for name in ("a", "b")], tmp_path))
    (tmp_path / "a").write_bytes(b"damaged")
    publish(with_sums([(tmp_path / "b", b"new")]))
    told = checked(tmp_path)
    assert (told.returncode, told.stdout.splitlines()) == (1, ["a: FAILED", "b: OK"])


def test_a_folder_without_a_list_gets_none(tmp_path: Path) -> None:
    files = [(tmp_path / "a", b"")]
    assert with_sums(files) == files


def test_a_file_of_the_users_is_left_alone_and_said_where_a_list_is_wanted(tmp_path: Path) -> None:
    (tmp_path / SUMS).write_text("my notes")
    files = [(tmp_path / "a", b"")]
    assert with_sums(files) == files
    with pytest.raises(UserInput, match=r"MANIFEST\.sha256: is no list of sha256sum, and would be replaced"):
        check_sums_place(tmp_path / SUMS)


def test_a_list_may_be_added_to(tmp_path: Path) -> None:
    check_sums_place(tmp_path / SUMS)
    (tmp_path / SUMS).write_text(sums_text({"a": "0" * 64}))
    check_sums_place(tmp_path / SUMS)
