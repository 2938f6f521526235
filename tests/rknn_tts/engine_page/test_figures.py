from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from cost.table import CostRow
from rknn_tts.engine_page.along import Along
from rknn_tts.engine_page.figures import (
    Bar,
    Drawing,
    axis_figure,
    bar_figure,
    operator_figure,
    snr_figure,
    spectra_figure,
)
from rknn_tts.engine_page.spectra import Spectrogram

HOSTILE = '<script>alert(1)</script> $x_{"--> &'
ROWS = (
    CostRow("Conv (NPU)", 3, 2_000_000, 5000.0, 3.0),
    CostRow("Slice (CPU)", 1, 0, 1000.0, 5.2),
)
ALONG = Along(np.asarray([0.0, 0.1, 0.2]), np.asarray([40.0, np.nan, np.inf]))


def drawn() -> list[Drawing]:
    rng = np.random.default_rng(1)
    spectra = [Spectrogram(rng.normal(-50, 9, (8, 12)).astype(np.float32), 1.5, 8000.0) for _ in range(2)]
    return [
        operator_figure((*ROWS, CostRow(HOSTILE, 1, 0, 1.0, 0.1))),
        snr_figure(ALONG, [("engine", ALONG)], [0.15], f"a caption {HOSTILE}"),
        axis_figure([(HOSTILE, ALONG)], "a caption"),
        spectra_figure([("original", spectra[0]), (HOSTILE, spectra[1])], [0.5], "a caption"),
        bar_figure([Bar(HOSTILE, 3.5), Bar("engine", None)], "ms", "a caption"),
    ]


@pytest.fixture(scope="module")
def figures() -> list[Drawing]:
    return drawn()


@pytest.mark.parametrize("number", range(5))
def test_figure_is_one_element_whose_texts_are_texts(figures: list[Drawing], number: int) -> None:
    drawing = figures[number]
    # The page's parser knows the namespace of links inside an SVG; XML has to be told.
    root = ET.fromstring(drawing.svg.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))
    assert root.tag == "svg"
    assert root.get("viewBox")
    assert root.get("aria-label") == drawing.caption
    assert {"script", "style", "metadata"} & {element.tag for element in root.iter()} == set()
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
    links = [value for element in root.iter() for name, value in element.attrib.items() if name.endswith("href")]
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)


def test_figures_are_the_same_when_they_are_drawn_again(figures: list[Drawing]) -> None:
    assert drawn() == figures


def test_figures_take_their_colours_from_the_page(figures: list[Drawing]) -> None:
    for drawing in figures:
        assert "var(--ink)" in drawing.svg
        assert re.findall("#0[0-9]0000", drawing.svg) == []
        assert re.search(r"\b20\d\d-\d\d-\d\d", drawing.svg) is None


def test_figures_name_what_they_show(figures: list[Drawing]) -> None:
    operators, _, axis, _, bars = (drawing.svg for drawing in figures)
    escaped = "&lt;script&gt;alert(1)&lt;/script&gt; $x_{"
    assert "Slice (CPU)" in operators
    assert all(escaped in svg for svg in (operators, axis, bars))
    assert ">not known<" in bars
    assert ">3.5<" in bars


def test_operator_figure_tells_how_many_it_leaves_out() -> None:
    many = [CostRow(f"Op{i} (NPU)", 1, 1000, 1.0, 0.1) for i in range(20)]
    assert operator_figure(many).caption.endswith(" 6 more operators are in the table.")
