"""A page in a real browser, where one is installed: what it lays out, and that there is something to see."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from rknn_tts_runtime import write_wav

from cost.table import by_operator
from logs.layer_table import Layer
from rknn_tts.blocks import Facts, Notice, Row, Table
from rknn_tts.engine_page.along import level_along, snr_along
from rknn_tts.engine_page.audio import data_uri
from rknn_tts.engine_page.elements import Badge, EnginePart, Meter, Page, Player, Players, Section
from rknn_tts.engine_page.figures import operator_figure, snr_figure, spectra_figure
from rknn_tts.engine_page.render import page_html
from rknn_tts.engine_page.spectra import spectrogram
from tests.rknn_tts.engine_page.browser import browser, laid_out, screenshot

RATE = 16000
NAME = "a_rather_long_name_of_a_node_without_a_single_blank/" * 4
LAYERS = tuple(
    Layer(i, "Conv", "FLOAT16", "NPU", "", "", 0, 0, 10**5 * i, 50.0 * i, f"Conv:{NAME}{i}") for i in range(9)
)


@pytest.fixture(scope="module")
def program() -> str | None:
    found = browser()
    if found is None:
        warnings.warn("No Chromium is installed: pages are not looked at in a browser.", stacklevel=1)
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every kind of element, half a second of sound in it."""
    folder = tmp_path_factory.mktemp("page")
    samples = np.random.default_rng(0).normal(0, 0.1, RATE // 2).astype(np.float32)
    write_wav(str(folder / "sound.wav"), samples, RATE)
    along = snr_along(samples, samples * np.float32(1.01), RATE)
    pictures = [("original", spectrogram(samples, RATE)), ("engine", spectrogram(samples * np.float32(0.9), RATE))]
    rows = tuple(Row(("passed", f"{NAME}{i}", "1.5", "a sentence of some words " * 9), "good") for i in range(30))
    sections = (
        Section("facts", "Facts", (Facts((("name", NAME), ("digest", "ab" * 32))), Notice("note", NAME, "warn"))),
        Section(
            "sound", "Sound", (Players((Player("one", data_uri((folder / "sound.wav").read_bytes(), "audio/wav")),)),)
        ),
        Section(
            "figures",
            "Figures",
            (
                operator_figure(by_operator(LAYERS)),
                snr_figure(level_along(samples, RATE), [("engine", along)], [0.2], "a caption"),
                spectra_figure(pictures, [0.2], "a caption"),
                Meter("half of it", 0.5),
            ),
        ),
        Section("table", "Table", (Table("Gates", ("status", "gate", "figure", "detail"), rows, frozenset({2})),)),
    )
    part = EnginePart("engine-1", NAME, "an engine", (Badge("30 passed", "good"),), sections)
    path = folder / "page.html"
    path.write_bytes(page_html(Page(NAME, "An introduction.", (), (part,))))
    return path


def test_browser_lays_a_page_out_when_it_is_narrow_or_wide(program: str | None, page: Path, tmp_path: Path) -> None:
    if program is None:
        return
    found = laid_out(program, page, [400, 1400], tmp_path)
    for width in ("400", "1400"):
        seen = found[width]
        assert seen["overflow"] <= 0, (width, seen["wide"])  # tables and figures scroll by themselves
        assert [name for name, *_ in seen["sections"]] == [
            f"engine-1-{n}" for n in ("facts", "sound", "figures", "table")
        ]
        assert all(w > 300 and h > 40 for _, w, h in seen["sections"])
        assert len(seen["figures"]) == 3
        assert all(w > 500 and h > 80 for w, h in seen["figures"])
        assert sum(w > 100 and h > 50 for w, h in seen["pictures"]) == 3  # the others are bars of colours
        assert seen["sounds"] == [pytest.approx(0.5, abs=0.01)]
        assert (seen["good"], seen["paper"]) == ("rgb(26, 127, 55)", "rgb(255, 255, 255)")  # the style sheet's


def test_picture_of_a_page_is_not_blank(program: str | None, page: Path, tmp_path: Path) -> None:
    if program is None:
        return
    screenshot(program, page, tmp_path / "page.png", 900, 1800, tmp_path / "profile", dark=True)
    pixels = np.asarray(imread(str(tmp_path / "page.png")))[..., :3]
    assert pixels.shape[:2] == (1800, 900)
    assert float(np.median(pixels.mean(axis=2))) < 0.3  # the paper of a dark page
    assert float(np.std(pixels)) > 0.05
    assert len(np.unique((pixels * 255).astype(np.uint8).reshape(-1, 3), axis=0)) > 200  # text, bars, spectrograms
