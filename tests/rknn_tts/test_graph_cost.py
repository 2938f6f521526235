"""What a graph costs, built by a stand-in: what its log says, or why there is no cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import ToolFailure
from contracts.manifest import Memory
from rknn_tts.graph_cost import CostBuilds, GraphCost
from rknn_tts.layer_file import read_layers, sums_of
from rknn_tts.request import Request
from rknn_tts.steps import Steps
from tests.logs.build_logs import END, START, STRIDE, WIDE_ADDRESS, regtask
from tests.logs.layer_tables import RK3588
from tests.rknn_tts.stand_in_converter import write_converter
from tests.rknn_tts.workshop import fresh_steps

GRAPH = b"a graph, which the stand-in does not read"
ROWS = RK3588.splitlines(keepends=True)


def builds_by(
    script: str, folder: Path, steps: Steps | None = None, target: str = "rk3588", **options: Any
) -> CostBuilds:
    """Builds by a converter that runs `script`; logs and layers go to `folder`."""
    python = write_converter(folder / "converter", script)
    request = Request(command="surgery", **options)
    return CostBuilds(request, target, python, fresh_steps() if steps is None else steps, folder)


def cost_of(log: str, folder: Path) -> GraphCost:
    """What a graph costs whose build ends well and prints `log`."""
    return builds_by(f"print({log!r}, end='', flush=True)\ncompile()", folder).cost("net", GRAPH)


def test_cost_is_the_sums_of_the_layer_table(tmp_path: Path) -> None:
    cost = cost_of(START + RK3588 + END, tmp_path)
    assert (cost.fault, cost.regtask_lines) == ("", 0)
    assert cost.layers is not None
    # By hand, of the table's eight rows.
    assert (cost.layers.count, cost.layers.cycles) == (8, 4246 + 80640 + 280000)
    assert cost.layers.rw_kb == 40 + 40 + 57 + 762 + 820 + 150 + 1744
    assert [layer.name for layer in cost.layers.cpu] == ["Slice:/flow/flows.7/Slice"]
    assert cost.memory == Memory(12212.5, 17129.8)


def test_log_and_every_layer_are_put_down(tmp_path: Path) -> None:
    log = START + RK3588 + END
    cost = cost_of(log, tmp_path)
    assert (tmp_path / "net.log").read_text("utf-8") == log
    assert cost.layers is not None
    assert cost.layers.file == str(tmp_path / "net.layers.json")
    layers = read_layers(tmp_path / "net.layers.json")
    assert [layer.op for layer in layers][:3] == ["InputOperator", "Reshape", "Slice"]
    assert (sums_of(layers).count, sums_of(layers).cycles) == (cost.layers.count, cost.layers.cycles)


def test_regtask_lines_are_counted_over_all_fields(tmp_path: Path) -> None:
    narrow = regtask("lite", "0x1028", "0x7ff", "0x1e01")
    cost = cost_of(START + narrow * 3 + WIDE_ADDRESS * 2 + RK3588 + END, tmp_path)
    assert (cost.fault, cost.regtask_lines) == ("", 5)
    assert cost.layers is not None


def test_build_that_is_stopped_for_what_it_prints_is_a_fault(tmp_path: Path) -> None:
    cost = cost_of(START + STRIDE + RK3588 + END, tmp_path)
    assert cost.layers is None
    assert "REGTASK v2:0x1014:0:0x7 with value 0xf" in cost.fault


def test_build_that_fails_is_a_fault_and_not_the_end(tmp_path: Path) -> None:
    cost = builds_by("print('E build: Segmentation', flush=True)\nraise SystemExit(3)", tmp_path).cost("net", GRAPH)
    assert (cost.layers, cost.memory, cost.regtask_lines) == (None, None, 0)
    assert "3" in cost.fault
    assert str(tmp_path / "net.log") in cost.fault
    assert not (tmp_path / "net.layers.json").exists()
    assert (tmp_path / "net.log").read_text("utf-8") == "E build: Segmentation\n"


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("", "holds no layer table"),
        ("".join(ROWS[:5]), "holds no layer"),
        ("".join(ROWS[:8]), "does not state the memory totals"),
        ("".join([*ROWS[:6], ROWS[6][:90] + "\n", *ROWS[7:]]), "1 rows of the layer table could not be read"),
    ],
    ids=["none", "title alone", "first rows", "row cut off"],
)
def test_layer_table_that_is_cut_off_is_a_fault_and_no_smaller_cost(tmp_path: Path, table: str, says: str) -> None:
    cost = cost_of(START + table + END, tmp_path)
    assert (cost.layers, cost.memory) == (None, None)
    assert cost.fault.startswith(f"The log {tmp_path / 'net.log'} tells no cost: ")
    assert says in cost.fault
    assert not (tmp_path / "net.layers.json").exists()


COUNTED = f"""
with open({{count!r}}, "a") as file:
    file.write("a build\\n")
print({START + RK3588 + END!r}, end="", flush=True)
compile()
"""


def test_graph_is_built_once_and_found_again_under_any_name(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script, again = COUNTED.format(count=str(count)), fresh_steps()
    first = builds_by(script, tmp_path).cost("net", GRAPH)
    second = builds_by(script, tmp_path, again).cost("other", GRAPH)
    assert count.read_text("utf-8") == "a build\n"
    assert again.reused == ["layers"]
    assert first.layers is not None
    assert second.layers is not None
    assert (second.layers.cycles, second.memory) == (first.layers.cycles, first.memory)
    assert json.loads((tmp_path / "other.layers.json").read_text()) == json.loads(
        (tmp_path / "net.layers.json").read_text()
    )
    assert not (tmp_path / "other.log").exists(), "a build that is found again has printed nothing"


def test_graph_is_built_again_when_it_or_the_target_is_another(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = COUNTED.format(count=str(count))
    builds_by(script, tmp_path).cost("net", GRAPH)
    builds_by(script, tmp_path).cost("net", GRAPH + b"!")
    builds_by(script, tmp_path, target="rk3566").cost("net", GRAPH)
    assert count.read_text("utf-8") == "a build\n" * 3


def test_failed_build_is_not_kept(tmp_path: Path) -> None:
    """It may have failed for a reason of the moment."""
    flag = tmp_path / "flag"
    script = f"""
    if not Path({str(flag)!r}).exists():
        Path({str(flag)!r}).touch()
        raise SystemExit(3)
    print({START + RK3588 + END!r}, end="", flush=True)
    compile()
    """
    assert builds_by(script, tmp_path).cost("net", GRAPH).fault
    assert builds_by(script, tmp_path).cost("net", GRAPH).fault == ""


def test_build_may_take_what_the_request_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def take(request: Any) -> None:
        asked.append(request)
        raise ToolFailure("taken")

    monkeypatch.setattr("engine.build.build_engine", take)
    assert builds_by("", tmp_path, timeout_s=9.0, memory_gb=1.5).cost("net", GRAPH).fault == "taken"
    assert [(one.timeout_s, one.memory_limit_bytes, one.feeds) for one in asked] == [(9.0, 1_500_000_000, ())]
