"""Holds docs/kokoro.md and Kokoro's code together: the gates and their bounds, the files, the figures of the seam."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from converters.kokoro import evidence, opening
from converters.kokoro.geometry import FULL, SHORT, geometry_of
from converters.stages import StageOptions
from models.kokoro.config import KOKORO_82M
from models.kokoro.generator_graph import shapes_of
from surgery.sine_forms import Form
from tests.docs.command_lines import request_of
from tests.docs.pages import ROOT, blocks, prose, table_rows
from tests.docs.test_commands import commands
from tests.docs.test_gates_page import GATES, pattern

PAGE = ROOT / "docs" / "kokoro.md"
README = ROOT / "README.md"
FAMILY = [*sorted((ROOT / "converters" / "kokoro").glob("*.py")), ROOT / "converters" / "sine_reach.py"]
_ROW = re.compile(r"^\| `([^`]+)` \| (both|full|short) \|.*\| (>=|<=) ([\d.]+) [^|]*\|$", re.MULTILINE)
_GATE = re.compile(r"(?:fp32|fp64|host|sine)\.[a-z_]+")
_SHOWN = re.compile(r"^(?:passed|failed|unproven) +(?:full\.|short\.)?(\S+)", re.MULTILINE)

BOUNDS = {(name, engine): float(bound) for name, engine, _, bound in _ROW.findall(PAGE.read_text(encoding="utf-8"))}


def gates_of_the_code() -> Iterator[tuple[str, float | None]]:
    """The gates that Kokoro's converter names, each with the constant `.._DB` beside it in the same call."""
    for path in FAMILY:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            names = [part.value for part in given if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            bounds = [part.id for part in given if isinstance(part, ast.Name) and part.id.endswith("_DB")]
            bounds += [part.attr for part in given if isinstance(part, ast.Attribute) and part.attr.endswith("_DB")]
            for name in names:
                if _GATE.fullmatch(name) and "Measurement" not in ast.unparse(node.func):
                    yield name, getattr(evidence, bounds[0]) if bounds else None


def test_gates_of_the_page_are_the_codes_with_their_bounds() -> None:
    told = {name: bound for (name, _), bound in BOUNDS.items() if name != "simulator" and "finished" not in name}
    found = dict(gates_of_the_code())
    assert found.pop("sine.reach") is None
    assert told.pop("sine.reach") == 1
    assert told == found


def test_bounds_of_finished_graph_and_simulator_are_the_codes() -> None:
    finished = {name: bound for (name, _), bound in BOUNDS.items() if "finished" in name}
    default = evidence.FINISHED_DB[Form.TRIANGLE]
    assert finished == dict.fromkeys(("fp32.finished_sentence", "fp32.finished_others"), default)
    simulator = {engine: bound for (name, engine), bound in BOUNDS.items() if name == "simulator"}
    assert simulator == opening.SIMULATOR_DB


def test_files_of_the_page_are_those_of_the_default_geometry() -> None:
    geometry = geometry_of(StageOptions(), KOKORO_82M.istftnet)
    told = set(re.findall(r"kokoro-generator-w\d+[a-z0-9-]*", prose(PAGE)))
    assert told == {geometry.stem(FULL), geometry.stem(SHORT)}


def test_tensors_of_the_page_are_the_engines() -> None:
    rows = {
        name: cells[0] for name, cells in table_rows(PAGE).items() if name in ("x", "har", "style", "mask", "mask_fine")
    }
    shapes = shapes_of(KOKORO_82M.istftnet, KOKORO_82M.style_dim, 128, masked=True)
    wanted = {
        name: tuple(_size(size) for size in re.sub(r"[\[\]]", "", cell).split(", ")) for name, cell in rows.items()
    }
    assert wanted == shapes


def _size(text: str) -> int:
    """Of an axis as the page writes it, `60 N + 1`, where N is 128."""
    match = re.fullmatch(r"(\d+)|(?:(\d+) )?N(?: \+ (\d+))?", text)
    assert match, text
    return int(match[1]) if match[1] else int(match[2] or 1) * 128 + int(match[3] or 0)


def test_commands_of_the_page_ask_for_windows_that_there_are() -> None:
    for block in blocks(PAGE):
        for line in commands(block) if block.language == "sh" else ():
            if " engine " in line:
                request = request_of(line)
                chosen = StageOptions(window=request.window, context=request.context, max_axis=request.max_axis,
                                      padding=request.padding)  # fmt: skip
                assert geometry_of(chosen, KOKORO_82M.istftnet).window.emitted > 0


def test_lines_that_pages_show_of_kokoro_name_real_gates() -> None:
    known = {*GATES, *(name for name, _ in BOUNDS)}
    shown = [
        gate
        for page in (PAGE, README)
        for block in blocks(page)
        if block.output and "FAMILY=kokoro" in block.text
        for gate in _SHOWN.findall(block.output)
    ]
    assert shown
    assert [gate for gate in shown if not any(pattern(name).fullmatch(gate) for name in known)] == []
