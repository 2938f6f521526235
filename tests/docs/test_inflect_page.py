"""Holds docs/inflect.md and Inflect's code together: gates and bounds, geometry, files, what a checkpoint may be."""

from __future__ import annotations

import re

from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.inflect import evidence
from converters.inflect.checkpoint import DECODE_NAME, DURATION_NAME, SLICE_NAME, STAND_INS
from converters.inflect.decoder import USUAL, stem_of
from converters.vits_ladder import DecoderWindow
from converters.vits_windows import window_of
from models.inflect.config import MICRO, NANO
from tests.docs.pages import ROOT, prose

PAGE = (ROOT / "docs" / "inflect.md").read_text(encoding="utf-8")
TEXT = prose(ROOT / "docs" / "inflect.md")
WINDOW = window_of(USUAL, None, None, MICRO.hop, MICRO.sample_rate)
LONG = max(evidence.LONG_FRAMES, 2 * WINDOW.frames)

_ROW = re.compile(r"^\| `([\w.]+)`[^|]*\|[^|]*\| >= ([\d.]+) dB \|$", re.MULTILINE)
_CONTEXTS = re.compile(r"^\| Context \| (.+) \|$", re.MULTILINE)
_STEM = re.compile(r"inflect-decoder-w[a-z0-9-]+")


def test_gates_of_the_page_have_the_codes_bounds() -> None:
    assert {name: float(bound) for name, bound in _ROW.findall(PAGE)} == {
        "fp32.cut": evidence.CUT_DB,
        evidence.SEAM_GATE: evidence.CUT_DB,
        "host.latent": evidence.HOST_DB,
        f"fp32.prior_{LONG}_frames.whole": evidence.WINDOW_DB,
        f"fp32.noise_{LONG}_frames.whole": evidence.WINDOW_DB,
        f"fp32.prior_{evidence.SHORT_FRAMES[0]}_frames.short": evidence.SHORT_DB,
        "fp32.self": evidence.CUT_DB,
        SIMULATOR: SIMULATOR_DB,
    }
    assert f"_frames.short`, and {', '.join(map(str, evidence.SHORT_FRAMES[1:]))} |" in PAGE


def test_contexts_of_the_page_are_those_that_are_measured() -> None:
    (told,) = _CONTEXTS.findall(PAGE)
    assert tuple(int(frames) for frames in told.split(" | ")) == evidence.CONTEXTS
    assert f"on {evidence.LONG_FRAMES} frames of the model's own prior" in TEXT


def test_geometry_and_files_of_the_page_are_the_codes() -> None:
    assert f"{WINDOW.frames} = {WINDOW.left} + {WINDOW.emitted} + {WINDOW.right}" in TEXT
    made = [DecoderWindow(WINDOW, masked, None, takes_short=True) for masked in (True, False)]
    assert set(_STEM.findall(PAGE)) == set(map(stem_of, made))
    assert f"an interior window emits {1000 * WINDOW.emitted * MICRO.hop / MICRO.sample_rate:.0f} ms" in TEXT
    assert f"C {MICRO.inter_channels} for Micro and {NANO.inter_channels} for Nano" in TEXT


def test_checkpoints_of_the_page_are_the_codes() -> None:
    rows = TEXT[TEXT.index("| `CHECKPOINT` |") : TEXT.index("Nothing in a checkpoint is run")]
    assert all(f"`{name}`" in rows or f"/{name}`" in rows for name in (DECODE_NAME, DURATION_NAME, SLICE_NAME))
    assert all(f"`{name}`" in rows for name in STAND_INS)
