"""Holds docs/qwen3.md and Qwen3's code together: gates and bounds, files, options, tensors, the cache's layout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from converters.qwen3 import evidence, step_engine
from converters.qwen3.checkpoint import locate
from converters.qwen3.geometry import CODES, DEFAULT_CODES, FIRST, HIDDEN, MAIN, MOST_CODES, ROLES, WINDOW, geometry_of
from converters.qwen3.opening import Opening
from converters.qwen3.stage import STAGE
from converters.qwen3.streams import PROOF_CODES
from converters.sine_reach import CHANNEL_MARGIN, SITE_MARGIN
from converters.stages import StageOptions
from models.qwen3.cache import KINDS, MINIMAL, REFERENCE, SPARE, cache_layout, wave_frames, wave_history
from models.qwen3.config import TRUE_CONFIG
from models.qwen3.step_graph import AUDIO, CACHE, CACHE_OUT
from rknn_tts.request import Request, options
from surgery.sine_forms import Form
from tests.docs.pages import ROOT, blocks, prose, table_rows
from tests.docs.test_gates_page import GATES, pattern
from tests.onnx_runs import open_session

PAGE = ROOT / "docs" / "qwen3.md"
README = ROOT / "README.md"
FAMILY = [*sorted((ROOT / "converters" / "qwen3").glob("*.py")), ROOT / "converters" / "sine_reach.py"]
TEXT = " ".join(prose(PAGE).split())
STEP = 64

_ROW = re.compile(r"^\| `([^`]+)` \| ([a-z, ]+) \|.*\| (>=|<=) ([\d.]+) [^|]*\|$", re.MULTILINE)
_GATE = re.compile(r"(?:fp32|host|sine|export)\.[a-z_]+")
_SHOWN = re.compile(r"^(?:passed|failed|unproven) +(?:main\.|first\.|window\.)?(\S+)", re.MULTILINE)

BOUNDS = {name: float(bound) for name, _, _, bound in _ROW.findall(PAGE.read_text(encoding="utf-8"))}


def gates_of_the_code() -> Iterator[str]:
    """The gates that Qwen3's converter names; sizes in a name left out."""
    for path in FAMILY:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _GATE.fullmatch(node.value):
                yield node.value


def test_gates_of_the_page_are_the_codes() -> None:
    told = {re.sub("[A-Z].*", "", name) for name in BOUNDS if not name.startswith("simulator.")}
    assert told == set(gates_of_the_code())


def test_bounds_of_the_page_are_the_codes() -> None:
    assert {
        "host.latent": evidence.HOST_DB,
        "fp32.stepwise": evidence.STEPWISE_DB,
        "fp32.stepwise_FIRST_MAIN": evidence.STEPWISE_DB,
        "fp32.events": evidence.STEPWISE_DB,
        "fp32.export": evidence.GRAPH_DB,
        "fp32.finished": evidence.FINISHED_DB[geometry_of(StageOptions()).form],
        "export.operators": evidence.MOST_OPERATORS,
        "sine.reach": 1,
        f"simulator.{AUDIO}": step_engine.AUDIO_DB,
        f"simulator.{CACHE_OUT}": step_engine.CACHE_DB,
    } == BOUNDS


def test_bounds_with_other_sines_are_the_codes() -> None:
    told = re.search(r"is (\d+) dB for `triangle`, `fine` and `floor`, (\d+) for `exact`, (\d+) for `clip`", TEXT)
    forms = (Form.FINE, Form.EXACT, Form.CLIP)
    assert told
    assert [float(bound) for bound in told.groups()] == [evidence.FINISHED_DB[form] for form in forms]
    alike = {evidence.FINISHED_DB[form] for form in (Form.TRIANGLE, Form.FINE, Form.FLOOR)}
    assert alike == {evidence.FINISHED_DB[Form.FINE]}


def test_margins_of_the_page_are_the_codes() -> None:
    assert (SITE_MARGIN, CHANNEL_MARGIN) == (1.5, 2.0)
    assert "reaches 1.5 times as far as its largest argument, and each of its channels twice as far" in TEXT


def test_figures_of_the_proof_are_the_codes() -> None:
    assert f"{PROOF_CODES} or more" in TEXT
    assert f"1 to {MOST_CODES}: the larger" in TEXT


def test_files_of_the_page_are_those_of_the_default_geometry() -> None:
    geometry = geometry_of(StageOptions())
    smaller = geometry_of(StageOptions(cache=MINIMAL))
    told = set(re.findall(r"qwen3-speech_decoder-b[a-z0-9-]+", prose(PAGE)))
    assert told == {geometry.stem(MAIN), geometry.stem(FIRST), smaller.stem(MAIN)}


def test_options_of_the_page_are_the_stages() -> None:
    flags = {option.name: option.flag for option in options("engine")}
    rows = {name: cells for name, cells in table_rows(PAGE).items() if name.startswith("--")}
    assert set(rows) == {flags[name] for name in STAGE.options}
    asked = {flags[name]: getattr(Request("engine"), name) for name in STAGE.options}
    assert set(asked.values()) == {None}
    geometry = geometry_of(StageOptions())
    defaults = {"--codes": DEFAULT_CODES, "--seam": geometry.seam, "--cache": geometry.cache, "--sine": geometry.form}
    assert {name: rows[name][0].strip("`") for name in defaults} == defaults


@pytest.mark.parametrize("words", [ROLES, KINDS, (HIDDEN, CODES)])
def test_choices_are_in_the_page(words: tuple[str, ...]) -> None:
    assert [word for word in words if f"`{word}`" not in TEXT] == []


def test_tensors_of_the_page_are_a_steps() -> None:
    rows = {name: cells[0] for name, cells in table_rows(PAGE).items()}
    shapes = {}
    for seam in (HIDDEN, CODES):
        checkpoint = locate("random", lambda text, _: PAGE)
        shapes.update(Opening(checkpoint, StageOptions(seam=seam), open_session).shapes(STEP))
    assert {name: sizes(rows[name]) for name in shapes} == shapes
    assert sizes(rows[CACHE_OUT]) == shapes[CACHE]
    assert sizes(rows[AUDIO]) == (1, 1, TRUE_CONFIG.samples_per_code * STEP, 1)


def sizes(cell: str) -> tuple[int, ...]:
    """The shape in a cell, where B is STEP."""
    return tuple(_product(axis) for axis in cell.strip("[]").split(", "))


def _product(text: str) -> int:
    """Of `1920 B`, or a number."""
    number = int(text.removesuffix("B").strip() or 1)
    return number * STEP if text.endswith("B") else number


def test_cache_of_the_page_is_the_layout() -> None:
    rows = table_rows(PAGE)
    found = {}
    for name, cells in rows.items():
        if len(cells) == 3 and (shape := re.fullmatch(r"(\d+) x (\d+)", cells[0])):
            for layer in range(TRUE_CONFIG.num_hidden_layers) if ".L." in name else (0,):
                found[name.replace(".L.", f".{layer}.")] = (_offset(cells[1], layer), (int(shape[1]), int(shape[2])))
    whole, needed = (cache_layout(TRUE_CONFIG, kind) for kind in (REFERENCE, MINIMAL))
    assert found == {part.name: (part.offset, part.shape) for part in whole.layout}
    assert [part for part in whole.layout if part.name != SPARE] == list(needed.layout)
    assert f"{whole.numel:,} numbers of the reference's cache" in TEXT
    assert f"ends behind `valid`: {needed.numel:,} numbers" in TEXT


def _offset(text: str, layer: int) -> int:
    """Of `145408 L + 72704`."""
    match = re.fullmatch(r"(?:(\d+) L)?(?: \+ )?(\d+)?", text)
    assert match, text
    return int(match[1] or 0) * layer + int(match[2] or 0)


def test_head_of_the_page_is_the_codes() -> None:
    frames, rate = wave_frames(TRUE_CONFIG), 1920 // (4 * 8)
    assert f"the first {frames} of these frames, behind the {frames} of the step before" in TEXT
    assert f"the body's first {frames * rate}" in TEXT
    assert f"depends on {wave_history(TRUE_CONFIG)} frames at most" in TEXT


def test_lines_that_pages_show_of_qwen3_name_real_gates() -> None:
    known = {*GATES, *BOUNDS}
    shown = [
        gate
        for page in (PAGE, README)
        for block in blocks(page)
        if block.output and "FAMILY=qwen3" in block.text
        for gate in _SHOWN.findall(block.output)
    ]
    assert shown
    assert [gate for gate in shown if not any(pattern(name).fullmatch(gate) for name in known)] == []


def test_window_role_of_the_page_is_one() -> None:
    assert geometry_of(StageOptions(window_role="25+12")).sizes[WINDOW].codes == 37
    assert "an engine of 37 codes" in TEXT
