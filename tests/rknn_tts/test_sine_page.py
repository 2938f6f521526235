"""The page of sine forms: its text is the generator's, and some of its rows are built again."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rknn_tts.sine_page import (
    BETA,
    CASES,
    CHIPS,
    FORMS,
    PLAIN,
    SMALL,
    Case,
    Measured,
    built_row,
    measured,
    sine_page,
    specimen,
)
from surgery.sine_forms import Form
from tests.onnx_runs import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sine.md"

ROW = re.compile(r"\| (?:exact|clip|floor|triangle|fine|soft(?:, \d convolved)?) \|")


def rows_on_the_page() -> dict[Case, str]:
    """The row of each case: they stand in its order."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if ROW.match(line)]
    return dict(zip(CASES, lines, strict=True))


def cells(case: Case) -> list[str]:
    """Of its row, behind what names it."""
    line = rows_on_the_page()[case]
    assert line.startswith(case.label())
    return [cell.strip() for cell in line.removeprefix(case.label()).strip(" |").split("|")]


def test_sine_page_is_what_stands_in_the_docs_but_for_the_figures() -> None:
    rows = rows_on_the_page()
    assert PAGE.read_text(encoding="utf-8") == sine_page(rows.__getitem__)
    assert all(row.startswith(case.label()) for case, row in rows.items())


@pytest.mark.parametrize(
    "case", [Case(Form.EXACT), Case(Form.TRIANGLE), Case(Form.SOFT, alpha=None)], ids=lambda case: case.form.value
)
def test_row_on_the_page_is_what_a_build_gives(case: Case) -> None:
    assert rows_on_the_page()[case] == built_row(case)


def test_row_says_what_was_measured() -> None:
    made = Case(Form.TRIANGLE).label() + Measured(87.46, 50.75, 9, 0, 4295.7, 1.084).cells()
    assert made == "| triangle | 2 | 8 | rk3588 | 87.5 | 50.8 | 0 | 9 | 4296 | 1.08 |"
    assert Case(Form.EXACT, "rk3562").label() == "| exact | - | - | rk3562 |"


def test_triangle_is_all_on_the_npu_with_few_layers_and_half_the_time_of_the_sine() -> None:
    fp32, simulator, cpu, layers, _, spent = map(float, cells(Case(Form.TRIANGLE)))
    assert (fp32 >= 80, simulator >= 50, cpu, layers <= 14) == (True, True, 0, True)
    assert spent < 0.6 * float(cells(Case(Form.EXACT))[-1])


@pytest.mark.parametrize(
    "case", [case for case in (*FORMS, *BETA, *CHIPS, *PLAIN, *SMALL) if case.form not in (Form.EXACT, Form.FLOOR)]
)
def test_every_other_form_leaves_the_cpu_alone_and_pays(case: Case) -> None:
    *_, cpu, _, _, spent = cells(case)
    exact = Case(Form.EXACT, case.target, snake=case.snake, alpha=case.alpha, reach=case.reach)
    (least,) = {row for other, row in rows_on_the_page().items() if other.label() == exact.label() and
                (other.snake, other.alpha) == (case.snake, case.alpha)}  # fmt: skip
    assert cpu == "0"
    assert float(spent) < float(least.strip(" |").split("|")[-1])


@pytest.mark.parametrize("reach", [1.0, 2.0, 4.0, 8.0])
def test_soft_reads_the_tensor_twice_less_than_the_triangle_and_is_nearly_as_good(reach: float) -> None:
    one = 300.0  # KB: the tensor, in fp16
    triangle, soft = (
        list(map(float, cells(Case(form, alpha=None, reach=reach)))) for form in (Form.TRIANGLE, Form.SOFT)
    )
    assert triangle[4] - soft[4] == pytest.approx(2 * one, abs=5)
    assert soft[0] >= 90
    assert soft[1] >= triangle[1] - 2.5


def test_specimen_is_snake_beta_when_it_has_no_alpha_of_its_own() -> None:
    case = Case(Form.SOFT, alpha=None, reach=4.0)
    x = case.fed()
    assert np.abs(x * case.scales[:, None]).max() == pytest.approx(4 * np.pi, rel=1e-6)
    made = run(specimen(case), {"x": x})["y"]
    assert np.allclose(made, x + np.sin(case.scales[:, None] * x) ** 2 / case.scales[::-1, None], atol=1e-5)


def test_specimen_is_the_formula() -> None:
    x = np.linspace(-9, 9, 128 * 1200, dtype=np.float32).reshape(1, 128, 1200)
    made = run(specimen(Case(Form.EXACT, alpha=0.5)), {"x": x})["y"]
    assert np.allclose(made, x + np.sin(0.5 * x) ** 2 / 0.5, atol=1e-5)
    assert np.allclose(run(specimen(Case(Form.EXACT, snake=False)), {"x": x})["y"], np.sin(x), atol=1e-5)


def test_measured_counts_the_cpu_when_the_form_is_floor() -> None:
    made = measured(Case(Form.FLOOR, degree=1))
    assert (made.cpu, made.between) == (1, 8)
    assert made.fp32_db == pytest.approx(48.8, abs=0.1)
