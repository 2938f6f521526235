"""A build that crashes in a fuse rule of the toolkit is done once more without it, and only once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from contracts.errors import ToolFailure
from engine.build import build_engine, first_log
from engine.endings import StoppedByLog
from engine.request import BuildRequest
from engine.result import BuildResult, read_build, read_disabled_rules
from tests.engine.graphs import random, random_feed, reference, save_graph, snr_db

CRASH = """
request = json.loads((folder / "request.json").read_text())
def crash(rule):
    print(f"attempt without {request['disable_rules']}")
    print(f"W You can add disable_rules=['{rule}'] in rknn.config() to temporarily disable the error rule!")
    print("E build: Traceback (most recent call last):", flush=True)
    report(step="build", error="IndexError: too many indices")
    sys.exit(3)
def succeed():
    print("I rknn building done.", flush=True)
    (folder / "engine.rknn").write_bytes(b"RKNN" + bytes(60))
    report(step="done", outputs=["y"])
    sys.exit(0)
"""

CRASH_SLOWLY = """
def crash_slowly(rule, **said):
    report(step="build", **said)
    print(f"W You can add disable_rules=['{rule}'] in rknn.config() to temporarily disable the error rule!")
    print("E build: Traceback (most recent call last):")
    print("IndexError: too many indices", flush=True)
    time.sleep(9999)
"""

SLOW = CRASH + CRASH_SLOWLY
ONCE = CRASH + 'crash("rule_a") if "rule_a" not in request["disable_rules"] else succeed()\n'


@pytest.fixture
def request_for(fake_converter: Callable[[str], Path], tmp_path: Path) -> Callable[..., BuildRequest]:
    (tmp_path / "a.onnx").write_bytes(b"no toolkit reads it")

    def make(lines: str, **changes: Any) -> BuildRequest:
        request = BuildRequest(
            onnx=tmp_path / "a.onnx",
            target="rk3588",
            toolkit="2.3.2",
            converter_python=fake_converter(lines),
            result_folder=tmp_path / "result",
            log=tmp_path / "logs" / "net-rk3588.log",
            timeout_s=30.0,
        )
        return dataclasses.replace(request, **changes)

    return make


def test_build_is_done_again_without_the_rule_when_it_crashed_in_one(request_for: Callable[..., BuildRequest]) -> None:
    request, told = request_for(ONCE), list[str]()
    result = build_engine(request, again=told.append)
    assert told == ["rule_a"]
    assert result.disabled_rules == ("rule_a",)
    assert read_build(request.result_folder) == result
    assert read_disabled_rules(request.result_folder) == ("rule_a",)
    assert request.log.read_text() == "I rknn building done.\n"
    assert first_log(request.log).name == "net-rk3588.first.log"
    assert "attempt without []" in first_log(request.log).read_text()
    assert "Traceback" not in result.lines.read_text()


def test_build_keeps_the_rules_it_was_asked_to_leave_out_when_it_is_done_again(
    request_for: Callable[..., BuildRequest],
) -> None:
    assert build_engine(request_for(ONCE, disable_rules=("other",))).disabled_rules == ("other", "rule_a")


def test_build_has_no_second_attempt_when_no_rule_crashed(request_for: Callable[..., BuildRequest]) -> None:
    request = request_for(f"{CRASH}succeed()")
    first_log(request.log).parent.mkdir()
    first_log(request.log).write_text("of an earlier build")
    assert build_engine(request, again=pytest.fail).disabled_rules == ()
    assert not first_log(request.log).exists()


def test_build_names_both_rules_when_the_second_attempt_crashes_in_another(
    request_for: Callable[..., BuildRequest],
) -> None:
    lines = CRASH + 'crash("rule_b" if request["disable_rules"] else "rule_a")\n'
    request, told = request_for(lines), list[str]()
    with pytest.raises(ToolFailure) as caught:
        build_engine(request, again=told.append)
    sentence = str(caught.value)
    assert told == ["rule_a"]
    assert f"IndexError: too many indices. The log is kept in {request.log}." in sentence
    assert "without the toolkit's fuse rule rule_a" in sentence
    assert f"(its log is {first_log(request.log)}); the second crashed in rule_b." in sentence
    assert "\n" not in sentence
    assert caught.value.log == request.log
    assert "attempt without ['rule_a']" in request.log.read_text()
    assert "attempt without []" in first_log(request.log).read_text()
    assert not request.result_folder.exists()


@pytest.mark.parametrize("said", ["", "error='IndexError: too many indices'"], ids=["silent", "having said why"])
def test_build_is_done_again_when_the_worker_that_crashed_is_slow_to_end(
    said: str, request_for: Callable[..., BuildRequest]
) -> None:
    """On a busy machine it is ended for what its log says before it ends by itself."""
    lines = f'{SLOW}succeed() if request["disable_rules"] else crash_slowly("rule_a", {said})\n'
    request, told = request_for(lines), list[str]()
    assert build_engine(request, again=told.append).disabled_rules == ("rule_a",)
    assert told == ["rule_a"]
    assert "too many indices" in first_log(request.log).read_text()


def test_build_names_both_rules_when_a_worker_that_is_slow_to_end_crashes_twice(
    request_for: Callable[..., BuildRequest],
) -> None:
    lines = SLOW + 'crash_slowly("rule_b" if request["disable_rules"] else "rule_a")\n'
    with pytest.raises(ToolFailure, match=r"IndexError: too many indices.*; the second crashed in rule_b\.$") as caught:
        build_engine(request_for(lines))
    assert "\n" not in str(caught.value)


def test_build_is_not_done_again_when_the_line_that_stopped_it_is_no_crash_of_a_rule(
    request_for: Callable[..., BuildRequest],
) -> None:
    lines = """
    report(step="build")
    print("E build: Traceback (most recent call last):")
    print("KeyError: 'cond'", flush=True)
    time.sleep(9999)
    """
    with pytest.raises(StoppedByLog, match="KeyError: 'cond'"):
        build_engine(request_for(lines), again=pytest.fail)


def test_build_has_no_third_attempt_when_the_rule_crashes_although_it_is_off(
    request_for: Callable[..., BuildRequest],
) -> None:
    with pytest.raises(ToolFailure, match="the second crashed in the same"):
        build_engine(request_for(f'{CRASH}crash("rule_a")\n'))


def test_build_has_no_second_attempt_when_the_rule_was_off_already(request_for: Callable[..., BuildRequest]) -> None:
    request = request_for(f'{CRASH}crash("rule_a")\n', disable_rules=("rule_a",))
    with pytest.raises(ToolFailure, match="too many indices") as caught:
        build_engine(request, again=pytest.fail)
    assert "second attempt" not in str(caught.value)
    assert caught.value.log == request.log
    assert "attempt without ['rule_a']" in request.log.read_text()


RANDOM_WEIGHTS = "W load_onnx: Load external data for 'w' failed! Generate random data for test!"

SECOND_FAULTS = [
    ("time.sleep(9999)", {"timeout_s": 2.0}, ToolFailure, "time limit of 2 s"),
    ("os.kill(os.getpid(), signal.SIGSEGV)", {}, ToolFailure, "SIGSEGV"),
    (
        "data = []\n    while True: data.append(bytearray(os.urandom(1 << 20) * 32)); time.sleep(0.05)",
        {"memory_limit_bytes": (1 << 30) // 4},
        ToolFailure,
        "its limit of 0.268 GB",
    ),
    (
        f"print({RANDOM_WEIGHTS!r}, flush=True); time.sleep(9999)",
        {},
        StoppedByLog,
        "random",
    ),
]


@pytest.mark.parametrize(("fault", "changes", "kind", "word"), SECOND_FAULTS, ids=[item[3] for item in SECOND_FAULTS])
def test_second_attempt_has_the_same_limits_and_its_failure_tells_of_the_first(
    fault: str, changes: dict[str, Any], kind: type[Exception], word: str, request_for: Callable[..., BuildRequest]
) -> None:
    lines = f'{CRASH}if request["disable_rules"]:\n    {fault}\ncrash("rule_a")\n'
    with pytest.raises(kind, match=word) as caught:
        build_engine(request_for(lines, **changes))
    assert "second attempt, without the toolkit's fuse rule rule_a" in str(caught.value)


def test_build_leaves_both_logs_when_it_is_interrupted_in_the_second_attempt(
    request_for: Callable[..., BuildRequest],
) -> None:
    """`scratch` sees to it that no working directory of either is left."""

    def give_up(stage: str) -> None:
        raise KeyboardInterrupt(stage)

    lines = f'{CRASH}if request["disable_rules"]:\n    print("I rknn building ...", flush=True); time.sleep(9999)\n'
    request = request_for(f'{lines}crash("rule_a")\n')
    with pytest.raises(KeyboardInterrupt, match="compiling"):
        build_engine(request, progress=give_up)
    assert request.log.read_text() == "I rknn building ...\n"
    assert first_log(request.log).is_file()
    assert not request.result_folder.exists()


def test_build_is_done_again_although_the_first_log_cannot_be_kept(request_for: Callable[..., BuildRequest]) -> None:
    request = request_for(ONCE)
    first_log(request.log).mkdir(parents=True)  # a folder, where the file should be
    assert build_engine(request).disabled_rules == ("rule_a",)


def test_build_is_stopped_between_its_attempts_when_the_caller_ends_it(
    request_for: Callable[..., BuildRequest],
) -> None:
    def give_up(rule: str) -> None:
        raise KeyboardInterrupt(rule)

    request = request_for(ONCE)
    with pytest.raises(KeyboardInterrupt, match="rule_a"):
        build_engine(request, again=give_up)
    assert not request.log.exists()
    assert first_log(request.log).is_file()


def polyphase(path: Path) -> Path:
    """A polyphase ConvTranspose with its channels in the order (s, c_out): `merge_conv_channel_inner_perm` crashes."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1]),
        helper.make_node("Reshape", ["c", "split"], ["d"]),
        helper.make_node("Transpose", ["d"], ["e"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["e", "join"], ["f"]),
        helper.make_node("Conv", ["f", "v"], ["y"], pads=[1, 1]),
    ]
    weights = {
        "w": random(32, 24, 3),
        "split": np.array([1, 2, 16, 20]),
        "join": np.array([1, 16, 40]),
        "v": random(8, 16, 3),
    }
    return save_graph(path, nodes, {"x": (1, 24, 20)}, {"y": (1, 8, 40)}, weights)


def expanded_between_transposes(path: Path) -> Path:
    """As the mask of a UNet is exported: `swap_expand_transpose` crashes."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 2, 1]),
        helper.make_node("Expand", ["a", "shape"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[0, 2, 1]),
        helper.make_node("Sigmoid", ["c"], ["y"]),
    ]
    return save_graph(path, nodes, {"x": (2, 1, 40)}, {"y": (2, 24, 40)}, {"shape": np.array([2, 40, 24])})


@pytest.mark.parametrize(
    ("make_graph", "rule"),
    [(polyphase, "merge_conv_channel_inner_perm"), (expanded_between_transposes, "swap_expand_transpose")],
)
def test_real_toolkit_builds_a_right_engine_when_the_crashing_rule_is_off(
    make_graph: Callable[[Path], Path], rule: str, converter_python: Path, tmp_path: Path
) -> None:
    onnx, told = make_graph(tmp_path / "graph.onnx"), list[str]()
    feed = random_feed(onnx)
    request = BuildRequest(
        onnx, "rk3588", "2.3.2", converter_python, tmp_path / "result", tmp_path / "build.log", feeds=[feed]
    )
    result: BuildResult = build_engine(request, again=told.append)
    assert told == [rule]
    assert result.disabled_rules == (rule,)
    assert json.loads((tmp_path / "result" / "build.json").read_text())["disabled_rules"] == told
    assert "Traceback" in (tmp_path / "build.first.log").read_text()
    assert snr_db(result.simulated[0]["y"], reference(onnx, feed)["y"]) >= 40.0  # the simulator's threshold (cases.md)
