"""Folders that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.folders import new_folder


@pytest.mark.parametrize("earlier", [None, "old"])
def test_folder_holds_the_new_files_when_the_body_ends(tmp_path: Path, earlier: str | None) -> None:
    final = tmp_path / "deep" / "final"
    if earlier:
        final.mkdir(parents=True)
        (final / earlier).touch()
    with new_folder(final) as partial:
        (partial / "sub").mkdir()
        (partial / "sub" / "a").write_text("A")
        assert not (final / "sub").exists()
    assert [path.relative_to(final).as_posix() for path in sorted(final.rglob("*"))] == ["sub", "sub/a"]
    assert list(final.parent.iterdir()) == [final]
    assert final.stat().st_mode & 0o055 == 0o055


def test_folder_is_as_before_when_the_body_raises(tmp_path: Path) -> None:
    final = tmp_path / "final"
    final.mkdir()
    (final / "old").touch()
    with pytest.raises(KeyboardInterrupt), new_folder(final) as partial:  # noqa: PT012
        (partial / "a").touch()
        raise KeyboardInterrupt
    assert list(tmp_path.rglob("*")) == [final, final / "old"]
