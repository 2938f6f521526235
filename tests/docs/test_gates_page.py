"""Holds docs/gates.md and the verdicts of real engines together."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest

from surgery.catalogue import CATALOGUE
from surgery.declaration import Bounded
from tests.docs.pages import ROOT, files_of, table_rows
from tests.docs.workplace import CHOIR, Ran, Workplace

GATES = table_rows(ROOT / "docs" / "gates.md")
_OWN_BOUNDS = {
    f"pass.{entry.name}": entry.exactness.minimum_db for entry in CATALOGUE if isinstance(entry.exactness, Bounded)
}
_BOUND = re.compile(r"(>=|<=) ([\d.]+)(?: (\w+))?")


@cache
def pattern(name: str) -> re.Pattern[str]:
    """What a name of the page stands for: words in capitals are any."""
    return re.compile(re.sub(r"[A-Z]+", r"\\w+", re.escape(name)))


def verdicts(place: Workplace, stem: str) -> list[dict[str, Any]]:
    """The verdicts in the manifest of the engine `stem`."""
    manifest = json.loads((place.folder / "engines" / "rk3588" / f"{stem}.json").read_text(encoding="utf-8"))
    return list(manifest["verdicts"])


@pytest.fixture(scope="module")
def compiled(workplace: Workplace) -> Ran:
    """The foreign ONNX of docs/compile.md, compiled."""
    program = files_of(ROOT / "docs" / "compile.md")["make_net.py"].replace("net.onnx", "foreign.onnx")
    (workplace.folder / "make_foreign.py").write_text(program, encoding="utf-8")
    done = workplace.run(
        ".venv/bin/python make_foreign.py\n./rknn-tts compile foreign.onnx --target rk3588 --shape tokens:1,64"
    )
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="module")
def found(workplace: Workplace, masked: Ran, compiled: Ran, choir: Ran, durations: Ran) -> list[dict[str, Any]]:
    """The verdicts of five engines: a voice's, masked and not, of several speakers, of another stage, a foreign one."""
    stems = (
        "piper-decoder-w109",
        "piper-decoder-w109-masked",
        f"{CHOIR.stem}/piper-decoder-w109",
        "piper-duration_encoder-n128",
        "foreign",
    )
    return [verdict for stem in stems for verdict in verdicts(workplace, stem)]


def test_gates_are_in_the_page_when_an_engine_has_their_verdict(found: list[dict[str, Any]]) -> None:
    missing = [v["gate"] for v in found if not any(pattern(name).fullmatch(v["gate"]) for name in GATES)]
    assert missing == []


def test_gates_of_the_page_have_a_verdict_in_a_real_manifest(found: list[dict[str, Any]]) -> None:
    silent = [name for name in GATES if not any(pattern(name).fullmatch(v["gate"]) for v in found)]
    assert silent == []


@pytest.mark.parametrize("stem", ["piper-decoder-w109-masked", f"{CHOIR.stem}/piper-decoder-w109"])
def test_bounds_of_the_page_are_those_of_the_verdicts(
    workplace: Workplace, found: list[dict[str, Any]], stem: str
) -> None:
    assert found
    wrong = []
    for verdict in verdicts(workplace, stem):
        name = next(name for name in GATES if pattern(name).fullmatch(verdict["gate"]))
        bound = _BOUND.fullmatch(GATES[name][1])
        told = (float(bound[2]), bound[3] or "") if bound else None
        real = None if verdict["threshold"] is None else (verdict["threshold"], verdict["unit"])
        if (own := _OWN_BOUNDS.get(verdict["gate"])) is not None:  # an approximation owes what it declares
            told = (own, "dB")
        if told != real:
            wrong.append((name, told, real))
    assert wrong == []
