from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import UserInput
from farm.settings import Settings, read_settings, write_settings

SETTINGS = Settings("/a 'b'/rknn-tts", "/c/python", 22_000_000_000, attempts=2)


def test_settings_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_settings(SETTINGS, tmp_path / "settings.json")
    assert read_settings(tmp_path / "settings.json") == SETTINGS


@pytest.mark.parametrize("content", ["", "{}", '{"program": 1}', "[]"])
def test_settings_are_refused_when_they_are_damaged(content: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserInput, match=r"settings.json: is damaged .*; run `rknn-tts farm MATRIX.toml` again"):
        read_settings(path)


def test_settings_are_refused_when_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"settings.json: cannot be read \(No such file or directory\)"):
        read_settings(tmp_path / "settings.json")
