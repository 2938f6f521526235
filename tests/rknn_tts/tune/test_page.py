"""The page's tables, from the sweeps that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from converters.vits_ladder import default_windows
from rknn_tts.tune.expected_cost import expected_cost
from rknn_tts.tune.page import FOLDER, read_tuning, tables_of
from rknn_tts.tune.rows import PASSED
from rknn_tts.tune.utterance_lengths import in_frames, read_lengths
from tests.docs.pages import ROOT

SWEEPS = sorted(FOLDER.glob("*.json"))


def test_sweeps_are_there() -> None:
    assert SWEEPS


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda path: path.stem)
def test_page_shows_a_sweep_as_it_was_found(sweep: Path) -> None:
    page = (ROOT / "docs" / "tune.md").read_text(encoding="utf-8")
    for table in tables_of(read_tuning(sweep)):
        assert table in page


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda path: path.stem)
def test_ladder_of_a_sweep_passed_every_gate_for_the_lengths_of_the_file(sweep: Path) -> None:
    tuning = read_tuning(sweep)
    assert tuning.chosen is not None
    assert tuning.lengths == read_lengths()
    passed = {row.name for row in tuning.rows if row.status == PASSED}
    assert set(tuning.chosen.ladder.names) <= passed


def test_page_tells_what_the_single_window_of_before_takes() -> None:
    tuning = read_tuning(FOLDER / "piper-decoder-rk3588.json")
    (row,) = [row for row in tuning.rows if row.name == "109p"]
    assert row.rung is not None
    assert tuning.chosen is not None
    # 22,050 samples a second, 256 a frame.
    before = expected_cost(in_frames(read_lengths(), 22_050 / 256), [row.rung]).ms
    ratio = before / tuning.chosen.ladder.expected.ms
    page = " ".join((ROOT / "docs" / "tune.md").read_text(encoding="utf-8").split())
    assert f"(`109p`) takes {before:.0f} ms an utterance, {ratio:.2f} times as much" in page


def test_page_tells_what_inflect_s_default_ladder_costs() -> None:
    tuning = read_tuning(FOLDER / "inflect-decoder-rk3588.json")
    assert tuning.chosen is not None
    default = tuning.chosen.default
    assert default is not None
    windows = ",".join(default.names)
    assert default_windows()["inflect.decoder"]["default"] == windows
    page = " ".join((ROOT / "docs" / "tune.md").read_text(encoding="utf-8").split())
    ratio = default.expected.ms / tuning.chosen.ladder.expected.ms
    later = default.expected.first_audio_ms - tuning.chosen.ladder.expected.first_audio_ms
    assert f"`{windows}`. It takes {ratio:.2f} times as long as the choice on average and begins {later:.0f} ms" in page
    for name in ("448t", "224t"):
        (row,) = [row for row in tuning.rows if row.name == name]
        assert row.layers is not None
        assert row.size is not None
        assert f"{row.layers.cycles / row.size.emitted / 1000:.1f}" in page
        assert f"{row.layers.rw_kb / row.size.emitted:.0f}" in page


def test_default_ladder_of_piper_is_the_sweep_s_choice() -> None:
    chosen = read_tuning(FOLDER / "piper-decoder-rk3588.json").chosen
    assert chosen is not None
    assert default_windows()["piper.decoder"]["default"] == chosen.windows


def test_read_tuning_refuses_what_is_no_sweep(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="its schema is not 'rknn-tts/tuning/1'"):
        read_tuning(path)
