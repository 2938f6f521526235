from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import UserInput
from converters.hub_places import check_at_hand, repository_name
from tests.converters.hubs import COMMIT


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("voices/Inflect-Micro-v2", "Inflect-Micro-v2"),
        (f"hub/models--owner--Inflect-Micro-v2/snapshots/{COMMIT}", "Inflect-Micro-v2"),
        ("mine/snapshots/second", "second"),
        ("/", ""),
    ],
)
def test_repository_name_is_the_folders_or_that_of_the_repository_in_a_hubs_cache(folder: str, name: str) -> None:
    assert repository_name(Path(folder)) == name


def test_repository_name_is_that_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert repository_name(Path()) == tmp_path.name


def test_check_at_hand_refuses_a_place_on_a_hub_as_it_was_written() -> None:
    with pytest.raises(UserInput, match=r"^--checkpoint hf://owner/voice: is a place on a hub, .* download the file"):
        check_at_hand("hf://owner/voice")
    check_at_hand("hf/owner/voice.onnx")
