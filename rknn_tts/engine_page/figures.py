"""The figures of a page, as SVG that takes its colours from the page around it, so that light and dark both suit it.

They are drawn in placeholders, each of which the page's style sheet has a colour for. The same figures give the same
bytes: nothing in them tells of a time, a machine or a version.
"""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cost.model import CYCLES_PER_MS, KB_PER_MB, TRAFFIC_MB_PER_MS
from cost.table import CostRow
from pages.text import shown
from rknn_tts.engine_page.along import Along, Figures
from rknn_tts.engine_page.spectra import RANGE_DB, STEP_DB, Spectrogram, loudest_db, stepped, within
from rknn_tts.numbers import number

INK, MUTED, GRID = "#010000", "#020000", "#030000"
FIRST, SECOND, THIRD = "#040000", "#050000", "#060000"
_COLOURS = {INK: "ink", MUTED: "muted", GRID: "grid", FIRST: "first", SECOND: "second", THIRD: "third"}
"""Placeholder to the style sheet's name of the colour."""

MOST_DB = 140.0
"""A ratio above this, as of identical blocks, is drawn here: float32 tells no more."""

DIFFERENCE_STEP_DB = 0.5
"""Differences of levels are rounded to this."""

LEAST_SCALE_DB = 2.0
"""The scale of differences ends there, or further out where one in a thousand is larger."""

_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rknn-tts",
    "font.size": 10,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}

_DIFFERENCE = LinearSegmentedColormap.from_list(
    "difference",
    [
        (0.0, (0.10, 0.45, 0.90, 1.0)),
        (0.5, (0.10, 0.45, 0.90, 0.0)),
        (0.5, (0.90, 0.30, 0.15, 0.0)),
        (1.0, (0.90, 0.30, 0.15, 1.0)),
    ],
)
"""Quieter, alike, louder: what is alike shows the page, light or dark."""

_WIDTH_INCHES = 8.6
_LABEL = 46
"""Characters of a name that are drawn; the table beside the figure has all of it."""

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_STYLE = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_ROOT = re.compile(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>", re.DOTALL)
_FONTS = re.compile(r"'DejaVu Sans'(, [^;\"]*)?")


@dataclass(frozen=True)
class Drawing:
    """A figure of a page.

    Attributes:
        svg: the figure itself.
        caption: what it shows, as sentences.
    """

    svg: str
    caption: str


@dataclass(frozen=True)
class Bar:
    """A bar of a comparison: what it is of, and how long; None where that is not known."""

    label: str
    value: float | None


def operator_figure(rows: Sequence[CostRow], most: int = 14) -> Drawing:
    """Where a run's modelled time goes: a bar an operator, the dearest first, in the model's three terms."""
    chosen = list(rows[:most])
    cycles = [row.cycles / CYCLES_PER_MS for row in chosen]
    traffic = [row.rw_kb / KB_PER_MB / TRAFFIC_MB_PER_MS for row in chosen]
    off = [max(0.0, row.modelled_ms - a - b) for row, a, b in zip(chosen, cycles, traffic, strict=True)]
    with mpl.rc_context(_SETTINGS):
        figure, axes = _figure(0.9 + 0.3 * len(chosen))
        places = np.arange(len(chosen))[::-1]
        left = np.zeros(len(chosen))
        for values, colour, name in (
            (cycles, FIRST, "cycles"),
            (traffic, SECOND, "traffic"),
            (off, THIRD, "off the NPU"),
        ):
            if any(values):
                axes.barh(places, values, left=left, color=colour, height=0.7, label=name)
            left = left + np.asarray(values)
        _name_bars(axes, places, [row.name for row in chosen])
        axes.set_xlabel("modelled ms a run")
        axes.legend(loc="lower right")
        rest = len(rows) - len(chosen)
        more = f" {rest} more operators are in the table." if rest else ""
        return _drawing(
            figure,
            f"Modelled time by operator: cycles at 1 GHz, traffic at 5 GB/s, and what layers off the NPU cost.{more}",
        )


def snr_figure(level: Along, curves: Sequence[tuple[str, Along]], seams_s: Sequence[float], caption: str) -> Drawing:
    """Ratios along an utterance, with the windows' seams; below them how loud it is there.

    Args:
        level: the original's level.
        curves: names, and what is drawn under them; at most three.
        seams_s: where windows hand over, in seconds.
        caption: what is shown.
    """
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH_INCHES, 4.4), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        for axes in (upper, lower):
            for number, seam in enumerate(seams_s):
                label = "seam of two windows" if axes is upper and not number else None
                axes.axvline(seam, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)), label=label)
        for (name, along), colour, dashes in zip(
            curves, (FIRST, SECOND, THIRD), ("-", (0, (2, 1.5)), "-"), strict=False
        ):
            upper.plot(along.centre, _capped(along.db), color=colour, linewidth=1.2, linestyle=dashes, label=name)
        upper.set_ylabel("SNR, dB")
        upper.margins(x=0)
        figure.legend(loc="outside upper left", ncols=2, fontsize=9)
        lower.fill_between(level.centre, _capped(level.db), -100, color=GRID)
        lower.plot(level.centre, _capped(level.db), color=MUTED, linewidth=0.9)
        lower.set_ylim(-100, 0)
        lower.set_ylabel("level, dB")
        lower.set_xlabel("seconds")
        return _drawing(figure, caption)


def axis_figure(curves: Sequence[tuple[str, Along]], caption: str) -> Drawing:
    """Ratios along an axis; at most three curves, each with its name."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH_INCHES, 2.8), layout="constrained")
        axes = figure.subplots()
        for (name, along), colour in zip(curves, (FIRST, SECOND, THIRD), strict=False):
            axes.plot(along.centre, _capped(along.db), color=colour, linewidth=1.2, label=_short(name))
        axes.set_ylabel("SNR, dB")
        axes.set_xlabel("place on the last axis")
        axes.margins(x=0)
        for text in figure.legend(loc="outside upper left", ncols=3, fontsize=9).get_texts():
            text.set_parse_math(False)
        return _drawing(figure, caption)


def spectra_figure(named: Sequence[tuple[str, Spectrogram]], seams_s: Sequence[float], caption: str) -> Drawing:
    """Spectrograms of two signals beside each other on one scale of colours; below, where their levels differ.

    Args:
        named: two spectrograms of one size, each with its name: the reference, and what is compared with it.
        seams_s: where windows hand over, in seconds.
        caption: what is shown.
    """
    (_, reference), (_, measured) = named
    top = loudest_db(reference, measured)
    difference = stepped(within(measured.levels_db, top) - within(reference.levels_db, top), DIFFERENCE_STEP_DB)
    most = max(LEAST_SCALE_DB, float(np.percentile(np.abs(difference), 99.9)))
    with mpl.rc_context({**_SETTINGS, "axes.grid": False}):
        figure = Figure(figsize=(_WIDTH_INCHES, 5.4), layout="constrained")
        grid = figure.add_gridspec(2, 2)
        left = figure.add_subplot(grid[0, 0])
        right = figure.add_subplot(grid[0, 1], sharey=left)
        lower = figure.add_subplot(grid[1, :])
        extent = (0.0, reference.duration_s, 0.0, reference.highest_hz / 1000)
        pictures = [stepped(within(one.levels_db, top), STEP_DB) for _, one in named]
        level = _picture((left, right), pictures, extent, "magma", (top - RANGE_DB, top))
        differs = _picture((lower,), [difference], extent, _DIFFERENCE, (-most, most))
        for axes, title in zip((left, right, lower), (*(name for name, _ in named), "difference"), strict=True):
            axes.set_title(title, loc="left", fontsize=10, parse_math=False)
            axes.set_xlabel("seconds")
            for seam in seams_s:
                axes.axvline(seam, ymax=0.06, color=MUTED, linewidth=1.2)
        left.set_ylabel("kHz")
        lower.set_ylabel("kHz")
        right.tick_params(labelleft=False)
        figure.colorbar(level, ax=right, label="dB of full scale", pad=0.02)
        figure.colorbar(differs, ax=lower, label="dB", pad=0.01)
        return _drawing(figure, caption)


def bar_figure(bars: Sequence[Bar], unit: str, caption: str) -> Drawing:
    """One figure of several engines, a bar each in their order; of one that is not known, that is said."""
    with mpl.rc_context(_SETTINGS):
        figure, axes = _figure(0.9 + 0.32 * len(bars))
        places = np.arange(len(bars))[::-1]
        axes.barh(places, [bar.value or 0.0 for bar in bars], color=FIRST, height=0.65)
        for place, bar in zip(places, bars, strict=True):
            told = "not known" if bar.value is None else number(bar.value, 3)
            axes.annotate(told, (bar.value or 0.0, place), (4, 0), textcoords="offset points", va="center")
        _name_bars(axes, places, [bar.label for bar in bars])
        axes.margins(x=0.12)
        axes.set_xlim(left=0)
        axes.set_xlabel(unit)
        return _drawing(figure, caption)


def _figure(height_inches: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")
    axes = figure.subplots()
    axes.grid(axis="y", visible=False)
    return figure, axes


def _name_bars(axes: Axes, places: NDArray[np.int64], names: Sequence[str]) -> None:
    axes.set_yticks(places)
    axes.set_yticklabels([_short(name) for name in names], parse_math=False)
    axes.tick_params(axis="y", length=0)


def _short(name: str) -> str:
    text = shown(name)
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 3]}..."


def _picture(
    places: Sequence[Axes],
    levels: Sequence[NDArray[np.float32]],
    extent: tuple[float, float, float, float],
    colours: str | LinearSegmentedColormap,
    limits: tuple[float, float],
) -> Any:
    """The levels as pictures inside the SVG; the last of them, for a bar of colours."""
    for axes, picture in zip(places, levels, strict=True):
        image = axes.imshow(
            picture,
            origin="lower",
            extent=extent,
            aspect="auto",
            interpolation="none",
            cmap=colours,
            vmin=limits[0],
            vmax=limits[1],
        )
    return image


def _capped(ratio_db: Figures) -> Figures:
    return np.asarray(np.where(np.isnan(ratio_db), np.nan, np.clip(ratio_db, -MOST_DB, MOST_DB)))


def _drawing(figure: Figure, caption: str) -> Drawing:
    FigureCanvasSVG(figure)
    text = io.StringIO()
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with warnings.catch_warnings():
        # A name may hold a character that the font used to measure it lacks; the browser draws it with its own.
        warnings.simplefilter("ignore")
        figure.savefig(text, format="svg", metadata=empty, transparent=True)
    return Drawing(_inline(text.getvalue(), caption), caption)


def _inline(svg: str, caption: str) -> str:
    """An SVG file as an element of a page: as wide as there is room, named for who cannot see it."""
    body = svg[svg.index("<svg ") :]
    for pattern, put in ((_COMMENT, ""), (_METADATA, ""), (_STYLE, ""), (_GROUP_ID, "<g"), (_FONTS, "var(--sans)")):
        body = pattern.sub(put, body)
    for placeholder, name in _COLOURS.items():
        body = body.replace(placeholder, f"var(--{name})")
    label = html.escape(caption, quote=True)
    return _ROOT.sub(lambda root: f'<svg {root[1]} role="img" aria-label="{label}">', body, count=1).strip() + "\n"
