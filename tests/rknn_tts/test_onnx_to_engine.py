"""What happens between graph and engine, with a stand-in for the toolkit."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from contracts.errors import GateFailure, ToolFailure, UserInput
from rknn_tts import onnx_to_engine
from rknn_tts.graph_at_hand import NumericGates, OnnxSource, judge_numbers
from rknn_tts.outcome import Outcome
from rknn_tts.steps import Steps
from tests.gates.small_graphs import chain, scale_proto
from tests.logs.build_logs import NEW_FIELD, START
from tests.rknn_tts.stand_in_converter import DOUBLE, UNTIL_STOPPED, write_converter
from tests.rknn_tts.workshop import Workshop, new_workshop

LOG, FAILED, ENGINE = "build-logs/net-rk3588.log", "build-logs/net-rk3588.failed.json", "engines/rk3588/net.rknn"


@pytest.fixture
def workshop(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    made = new_workshop(tmp_path_factory)
    (made.folder / "net.onnx").write_bytes(scale_proto(2.0).SerializeToString())
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(made.folder.parent / "converter"))
    return made


def compiled(workshop: Workshop, lines: str, model: str = "net.onnx") -> Outcome:
    write_converter(workshop.folder.parent / "converter", lines)
    return workshop.run("compile", model=model, target="rk3588")


def statuses(workshop: Workshop) -> dict[str, str]:
    return {verdict["gate"]: verdict["status"] for verdict in workshop.json(FAILED)["verdicts"]}


def test_good_build_is_published(workshop: Workshop) -> None:
    done = compiled(workshop, DOUBLE)
    assert done.files[0] == ENGINE
    assert workshop.files() == {
        "net.onnx",
        ENGINE,
        "engines/rk3588/net.onnx",
        "engines/rk3588/net.json",
        LOG,
        "build-logs/net-rk3588.layers.json",
    }


def test_foreign_onnx_is_not_replaced_by_its_twin(workshop: Workshop) -> None:
    with pytest.raises(UserInput, match=r"net\.onnx: is an input of this command"):
        workshop.run("compile", model="net.onnx", target="rk3588", output=".")
    assert workshop.files() == {"net.onnx"}


def test_foreign_onnx_with_external_data_is_built_from_one_file(workshop: Workshop) -> None:
    path = workshop.folder / "net.onnx"
    onnx.save(scale_proto(2.0), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    compiled(workshop, DOUBLE)
    twin = onnx.load(workshop.folder / "engines/rk3588/net.onnx", load_external_data=False)
    assert twin.graph.initializer[0].data_location == onnx.TensorProto.DEFAULT


def test_build_is_ended_when_a_gate_fails_while_the_toolkit_works(workshop: Workshop) -> None:
    # In the run on standard normal values, 1e5 times one of them leaves fp16.
    (workshop.folder / "net.onnx").write_bytes(scale_proto(60000.0, size=4000).SerializeToString())
    with pytest.raises(GateFailure, match=r"^net\.rknn was not built to its end: a gate failed \(range\.activations\)"):
        compiled(workshop, UNTIL_STOPPED)
    assert workshop.files() == {"net.onnx", LOG, FAILED}
    assert workshop.json(FAILED)["log"] == LOG
    assert (workshop.folder / LOG).read_text(encoding="utf-8").startswith("D stage_0 ...\n")
    assert (statuses(workshop)["range.activations"], statuses(workshop)["structure.operators"]) == ("failed", "passed")


def test_build_that_its_log_stops_keeps_the_verdicts_reached_beside_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = workshop.folder.parent / "numbers are judged"

    def judged(source: OnnxSource, steps: Steps) -> NumericGates:
        numbers = judge_numbers(source, steps)
        done.touch()
        return numbers

    monkeypatch.setattr(onnx_to_engine, "judge_numbers", judged)
    lines = f"""
    print({START!r}, end="", flush=True)
    while not Path({str(done)!r}).exists():
        time.sleep(0.05)
    time.sleep(0.5)
    print({NEW_FIELD!r}, end="", flush=True)
    time.sleep(60)
    """
    with pytest.raises(GateFailure, match="0x7abc") as caught:
        compiled(workshop, lines)
    assert workshop.files() == {"net.onnx", LOG, FAILED}
    assert workshop.json(FAILED)["log"] == LOG
    found = statuses(workshop)
    assert (found["log.regtask"], found["range.activations"], found["structure.operators"]) == (
        "failed",
        "passed",
        "passed",
    )
    assert "log.complete" not in found
    assert {verdict.gate for verdict in caught.value.verdicts} == set(found)


def test_build_that_its_log_stops_is_told_though_a_gate_beside_it_broke(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise ToolFailure("onnxruntime is out of memory")

    monkeypatch.setattr(onnx_to_engine, "judge_numbers", broken)
    with pytest.raises(GateFailure, match="0x7abc"):
        compiled(workshop, f"print({NEW_FIELD!r}, end='', flush=True)\ntime.sleep(60)")


def test_simulator_that_fails_leaves_log_and_verdicts(workshop: Workshop) -> None:
    with pytest.raises(GateFailure, match=r"^net\.rknn was not written: a gate failed \(simulator\)"):
        compiled(workshop, DOUBLE.replace("2.0", "2.5"))
    assert workshop.files() == {"net.onnx", LOG, FAILED}
    assert statuses(workshop)["simulator"] == "failed"


def test_graph_that_fails_starts_neither_toolkit_nor_its_set_up(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_to_engine, "converter_python", lambda toolkit: pytest.fail("set up for nothing"))
    (workshop.folder / "net.onnx").write_bytes(ir.to_proto(chain("Atan")).SerializeToString())
    with pytest.raises(GateFailure, match=r"^net\.rknn was not built: .*Atan"):
        compiled(workshop, DOUBLE)
    assert workshop.json(FAILED)["log"] is None


def test_engine_stays_when_there_is_no_converter_any_more(workshop: Workshop) -> None:
    compiled(workshop, DOUBLE)
    (workshop.folder.parent / "converter").unlink()
    with pytest.raises(UserInput, match="RKNN_TTS_CONVERTER_PYTHON"):
        workshop.run("compile", model="net.onnx", target="rk3588", force=True)
    assert (workshop.folder / ENGINE).is_file()
