"""`rknn-tts plan`: what was built becomes a plan that a board reads."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.plans.schema import plan_schema, schema_text

from contracts.contract import Cache, CacheSlice, CarriedState, TensorSpec, Trim
from contracts.errors import EXIT_DONE, EXIT_REFUSED
from rknn_tts.commands import perform
from rknn_tts.deliver import deliver
from rknn_tts.report import Report
from rknn_tts.request import Request
from tests.rknn_tts.built_engines import write_engine, write_set
from tests.rknn_tts.workshop import Heard

HOST = b"host half"


def planned(*words: Path, **options: Any) -> Report:
    request = Request(command="plan", engines=[str(word) for word in words], **options)
    return perform(request, Heard(), lambda option: option.flag)


def options_of(report: Report) -> dict[str, Any]:
    assert report.error is None, report.error
    found = json.loads(Path(report.extra["plan"].file).read_text(encoding="utf-8"))
    assert found == report.extra["plan"].plan
    assert list(found) == ["session_options"]
    options: dict[str, Any] = found["session_options"]
    return options


def refusal(*words: Path, **options: Any) -> str:
    report = planned(*words, **options)
    assert report.exit_code == EXIT_REFUSED
    assert report.error is not None
    return report.error


def write_piper(folder: Path, **more: Any) -> list[Path]:
    return [
        write_engine(folder, "piper-decoder-w109", "piper.decoder", host=HOST, frames=109, **more),
        write_engine(folder, "piper-duration_encoder-n192", "piper.duration_encoder", "n192", host=b"other", **more),
        write_engine(folder, "piper-duration_encoder-n128", "piper.duration_encoder", "n128", host=b"other", **more),
    ]


PIPER = {
    "piper_tts.exec_plan": {
        "decoder": {
            "impl": "rknn",
            "artifacts": {"main": "piper-decoder-w109.rknn", "host": "piper-decoder-host.onnx"},
        },
        "duration_encoder": {
            "impl": "rknn",
            "artifacts": {
                "main": "piper-duration_encoder-n128.rknn,piper-duration_encoder-n192.rknn",
                "host": "piper-duration_encoder-host.onnx",
            },
        },
    }
}


def test_a_plan_places_every_engine_of_a_folder(tmp_path: Path) -> None:
    write_piper(tmp_path)
    write_engine(tmp_path, "kokoro-short", "kokoro.generator", "short", source="kokoro.pth", host=HOST)
    write_engine(tmp_path, "kokoro-full", "kokoro.generator", "full", source="kokoro.pth", host=HOST)
    report = planned(tmp_path)
    assert report.extra["plan"].file == str(tmp_path / "plan.json")
    artifacts = {"main": "kokoro-full.rknn", "short": "kokoro-short.rknn", "host": "kokoro-generator-host.onnx"}
    assert options_of(report) == {
        **PIPER,
        "kokoro_tts.exec_plan": {"generator": {"impl": "rknn", "artifacts": artifacts, "params": {"overlap": 8}}},
    }


@pytest.mark.parametrize("absolute", [False, True])
def test_a_board_reads_the_plan_when_it_was_written(tmp_path: Path, absolute: bool) -> None:
    write_piper(tmp_path)
    written = Path(planned(tmp_path, absolute=absolute).extra["plan"].file)
    plan = read_plans(written)["piper"]
    assert plan.components["duration_encoder"].artifacts == {
        "main": (tmp_path / "piper-duration_encoder-n128.rknn", tmp_path / "piper-duration_encoder-n192.rknn"),
        "host": (tmp_path / "piper-duration_encoder-host.onnx",),
    }
    assert Draft202012Validator(plan_schema()).is_valid(json.loads(written.read_text(encoding="utf-8")))


def test_engines_manifests_and_sets_name_the_same(tmp_path: Path) -> None:
    decoder, *encoders = write_piper(tmp_path)
    members = write_set(tmp_path, "piper-duration_encoder", *encoders)
    for words in (
        [decoder, *encoders],
        [decoder.with_suffix(".json"), members],
        [write_set(tmp_path, "piper", decoder, *encoders)],
        [tmp_path, decoder, members],
    ):
        assert options_of(planned(*words)) == PIPER


def test_windows_of_a_decoder_are_a_ladder_by_width(tmp_path: Path) -> None:
    for frames in (109, 93, 300):
        write_engine(tmp_path, f"w{frames}", "piper.decoder", frames=frames)
    main = options_of(planned(tmp_path))["piper_tts.exec_plan"]["decoder"]["artifacts"]["main"]
    assert main == "w93.rknn,w109.rknn,w300.rknn"


def trim(frames: int) -> dict[str, Any]:
    """Of the manifest of an engine that drops its context: one frame on either side."""
    inputs = (TensorSpec("z", (1, 4)), TensorSpec("place", (1, 3, 1, 1)))
    return {"frames": frames, "trim": Trim("place", frames - 2), "inputs": inputs}


@pytest.mark.parametrize("stage", ["piper.decoder", "inflect.decoder"])
def test_roles_of_a_decoders_ladder_are_its_widths(tmp_path: Path, stage: str) -> None:
    engines = [
        write_engine(tmp_path, "w448-trimmed", stage, "w448", host=HOST, **trim(448)),
        write_engine(tmp_path, "w128-masked", stage, "w128", host=HOST, frames=128),
        write_engine(tmp_path, "w1024", stage, "w1024", host=HOST, frames=1024),
    ]
    report = planned(write_set(tmp_path, "decoder", *engines))
    (components,) = options_of(report).values()
    assert components["decoder"]["artifacts"]["main"] == "w128-masked.rknn,w448-trimmed.rknn,w1024.rknn"
    assert report.extra["plan"].notes[-1].endswith("window stands (w448-trimmed.rknn): --reference leaves them out.")
    read = read_plans(tmp_path / "plan.json")[stage.split(".")[0]]
    assert read.components["decoder"].artifacts["main"][0] == tmp_path / "w128-masked.rknn"


def test_trimmed_engines_are_left_out_when_the_plan_is_for_the_reference(tmp_path: Path) -> None:
    masked = write_engine(tmp_path, "w128-masked", "piper.decoder", "w128", host=HOST, frames=128)
    trimmed = write_engine(tmp_path, "w448-trimmed", "piper.decoder", "w448", host=HOST, **trim(448))
    report = planned(trimmed, masked, reference=True)
    assert options_of(report)["piper_tts.exec_plan"]["decoder"]["artifacts"] == {"main": "w128-masked.rknn"}
    (note,) = report.extra["plan"].notes
    assert note == (
        "The reference application does not tell trimmed engines where their window stands (w448-trimmed.rknn): they "
        "are left out."
    )
    assert "w448-trimmed.rknn: is trimmed: it takes where in an utterance" in refusal(trimmed, reference=True)


def test_roles_of_qwen3_are_those_of_the_table(tmp_path: Path) -> None:
    for role in ("window", "first", "main"):
        write_engine(tmp_path, role, "qwen3.speech_decoder", role, host=HOST)
    placed = options_of(planned(tmp_path))["qwen3_tts.exec_plan"]["speech_decoder"]
    host = "qwen3-speech_decoder-host.onnx"
    assert placed["artifacts"] == {"main": "main.rknn", "first": "first.rknn", "window": "window.rknn", "host": host}


COSYVOICE2: dict[str, dict[str | None, str]] = {
    "speaker": {"t400": "main", "t200": "main"},
    "flow_encoder": {"steady": "main", "first": "first"},
    "flow_estimator": {"step": "step", "s200": "main"},
    "f0": {"b40": "main", "b32": "main"},
    "hift": {"b40": "main", "b32": "main"},
    "speech_head": {None: "main"},
}


def test_every_stage_of_cosyvoice2_has_its_place(tmp_path: Path) -> None:
    for stage, roles in COSYVOICE2.items():
        for role in roles:
            # Each stage has a checkpoint file of its own.
            name = f"{stage}.{role or 'w8a8'}"
            write_engine(tmp_path, name, f"cosyvoice2.{stage}", role, source=f"{stage}.pt", kind="random")
    report = planned(tmp_path)
    artifacts = {name: part["artifacts"] for name, part in options_of(report)["cosyvoice2.exec_plan"].items()}
    assert artifacts == {
        "speaker": {"main": "speaker.t200.rknn,speaker.t400.rknn"},
        "flow_encoder": {"main": "flow_encoder.steady.rknn", "first": "flow_encoder.first.rknn"},
        "flow_estimator": {"step": "flow_estimator.step.rknn", "main": "flow_estimator.s200.rknn"},
        "f0": {"main": "f0.b32.rknn,f0.b40.rknn"},
        "hift": {"main": "hift.b32.rknn,hift.b40.rknn"},
        "speech_head": {"main": "speech_head.w8a8.rknn"},
    }
    assert any("made of random weights" in note for note in report.extra["plan"].notes)
    assert "no place in a plan for the reference application" in refusal(tmp_path, reference=True)


def test_the_reference_is_told_only_what_it_knows(tmp_path: Path) -> None:
    write_piper(tmp_path)
    write_engine(tmp_path, "s200", "cosyvoice3.flow", "s200", source="flow.onnx")
    write_engine(tmp_path, "b32", "cosyvoice2.f0", "b32", source="hift.pt")
    report = planned(tmp_path, reference=True)
    options = options_of(report)
    assert list(options) == ["piper_tts.exec_plan", "cosyvoice3.exec_plan"]
    assert options["piper_tts.exec_plan"]["decoder"]["artifacts"] == {"main": "piper-decoder-w109.rknn"}
    assert report.extra["plan"].notes == ()
    write_engine(tmp_path, "piper-decoder-w93", "piper.decoder", host=HOST, frames=93)
    assert "has room for one as main" in refusal(tmp_path, reference=True)


def test_notes_say_what_the_reference_does_not_know(tmp_path: Path) -> None:
    write_piper(tmp_path)
    write_engine(tmp_path, "piper-decoder-w93", "piper.decoder", host=HOST, frames=93)
    (note,) = planned(tmp_path).extra["plan"].notes
    assert "decoder main of several files, decoder host, duration_encoder host" in note
    assert "--reference" in note


def test_names_are_under_the_plans_folder(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "my voice", "w109", "inflect.decoder", frames=109)
    report = planned(engine, output=str(tmp_path))
    assert report.extra["plan"].file == str(tmp_path / "plan.json")
    assert options_of(report)["inflect_v2.exec_plan"]["decoder"]["artifacts"] == {"main": "my voice/w109.rknn"}
    place = tmp_path / "elsewhere" / "board.json"
    assert "--absolute writes whole paths" in refusal(engine, output=str(place))
    assert not place.exists()
    whole = options_of(planned(engine, output=str(place), absolute=True))
    assert whole["inflect_v2.exec_plan"]["decoder"]["artifacts"]["main"] == str(engine)
    assert "ending in .json is expected" in refusal(engine, output=str(tmp_path / "plan.yaml"))


def test_an_earlier_plan_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    engine = write_engine(tmp_path, "w109", "piper.decoder", frames=109)
    place = tmp_path / "plan.json"
    for earlier in ("{}", "mine", '{"session_options": {}}', '{"a": 1}'):
        place.write_text(earlier, encoding="utf-8")
        assert "is no plan, and would be replaced" in refusal(engine)
        assert place.read_text(encoding="utf-8") == earlier
    assert "is no plan, and would be replaced" in refusal(engine, output=str(engine.with_suffix(".json")))
    for earlier in ('{"session_options": {"kokoro_tts.exec_plan": {}}}', '{"piper_tts.exec_plan": {}}'):
        place.write_text(earlier, encoding="utf-8")
        assert list(options_of(planned(engine))) == ["piper_tts.exec_plan"]


def test_engines_are_refused_when_their_targets_are_mixed(tmp_path: Path) -> None:
    one = write_engine(tmp_path, "a", "piper.decoder", frames=109)
    other = write_engine(tmp_path, "b", "piper.duration_encoder", "n128", target="rk3576")
    assert refusal(one, other).startswith(f"{other}: is for rk3576, and {one} for rk3588")


def test_engines_are_refused_when_they_are_of_different_checkpoints(tmp_path: Path) -> None:
    one = write_engine(tmp_path, "a", "piper.decoder", frames=109)
    write_engine(tmp_path, "b", "piper.decoder", frames=93, source="other.onnx")
    assert "made of another checkpoint (other.onnx)" in refusal(tmp_path)
    encoder = write_engine(tmp_path, "c", "piper.duration_encoder", "n128", source="other.onnx")
    assert "engines of one piper voice are made of one" in refusal(one, encoder)


def layout(name: str) -> Cache:
    return Cache(8, (CacheSlice(name, 0, (2, 4)),))


def test_engines_are_refused_when_their_caches_differ(tmp_path: Path) -> None:
    write_engine(tmp_path, "main", "qwen3.speech_decoder", "main", cache=layout("conv"))
    write_engine(tmp_path, "first", "qwen3.speech_decoder", "first", cache=layout("keys"))
    assert "lays its state out in another way" in refusal(tmp_path)
    write_engine(tmp_path, "first", "qwen3.speech_decoder", "first", cache=layout("conv"))
    assert planned(tmp_path).exit_code == EXIT_DONE


def test_engines_are_refused_when_their_states_differ(tmp_path: Path) -> None:
    def write(role: str, history: int) -> None:
        inputs = (TensorSpec("x", (1, 4)), TensorSpec("keys", (1, history)))
        state = (CarriedState("keys", "keys_out"),)
        write_engine(tmp_path, role, "cosyvoice2.flow_encoder", role, inputs=inputs, state=state)

    write("steady", 352)
    write("first", 128)
    assert "lays its state out in another way" in refusal(tmp_path)
    write("first", 352)
    assert planned(tmp_path).exit_code == EXIT_DONE


def test_engines_are_refused_when_two_have_one_place(tmp_path: Path) -> None:
    write_engine(tmp_path, "plain", "piper.decoder", frames=109)
    write_engine(tmp_path, "masked", "piper.decoder", frames=109)
    assert "is as wide as" in refusal(tmp_path)
    more = tmp_path / "more"
    write_engine(more, "a", "kokoro.generator", "full")
    write_engine(more, "b", "kokoro.generator", "full")
    assert "has the same role as" in refusal(more)


def test_engines_are_refused_when_one_is_missing_that_is_needed(tmp_path: Path) -> None:
    short = write_engine(tmp_path, "short", "kokoro.generator", "short")
    assert "needs main (engine for whole windows)" in refusal(short)


def test_engines_are_refused_when_their_host_halves_differ(tmp_path: Path) -> None:
    one = write_engine(tmp_path / "a", "w93", "piper.decoder", host=b"a", frames=93)
    other = write_engine(tmp_path / "b", "w109", "piper.decoder", host=b"b", frames=109)
    assert "has another host half" in refusal(one, other, output=str(tmp_path))


@pytest.mark.parametrize(
    ("stage", "fields", "words"),
    [
        ("", {}, "is made of a foreign ONNX, and no plan has a place"),
        ("bark.decoder", {}, "is of bark decoder, and no plan has a place for that"),
        ("piper.duration_flows", {}, "is of piper duration_flows, and no plan has a place for that"),
        ("piper.decoder", {"role": "n128"}, "has the role n128, and a plan's piper decoder has no place"),
        ("kokoro.generator", {}, "has no role, and a plan's kokoro generator has no place"),
    ],
)
def test_an_engine_is_refused_when_plans_have_no_place_for_it(
    tmp_path: Path, stage: str, fields: dict[str, Any], words: str
) -> None:
    assert words in refusal(write_engine(tmp_path, "odd", stage, **fields))


def test_stale_and_missing_files_are_refused(tmp_path: Path) -> None:
    engine = write_engine(tmp_path, "w109", "piper.decoder", host=HOST, frames=109)
    host, manifest = tmp_path / "piper-decoder-host.onnx", engine.with_suffix(".json")
    host.write_bytes(b"another")
    assert "is stale: the host half piper-decoder-host.onnx beside it is another one" in refusal(engine)
    host.unlink()
    assert "its host half piper-decoder-host.onnx is not beside it" in refusal(engine)
    host.write_bytes(HOST)
    engine.write_bytes(b"RKNN another")
    assert "is stale: the engine w109.rknn" in refusal(engine)
    assert not (tmp_path / "plan.json").exists()
    renamed = engine.rename(tmp_path / "renamed.rknn")
    assert "its engine w109.rknn is not beside it" in refusal(manifest)
    assert "its manifest renamed.json is not beside it" in refusal(renamed)
    assert "its manifest renamed.json is not beside it" in refusal(tmp_path)


def test_a_manifest_is_refused_when_it_lost_its_engines_name(tmp_path: Path) -> None:
    engine = write_engine(tmp_path, "w109", "piper.decoder", frames=109)
    renamed = engine.with_suffix(".json").rename(tmp_path / "other.json")
    assert "call it w109.json" in refusal(renamed)


def test_what_is_no_engine_is_refused(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "built", "w109", "piper.decoder", frames=109)
    (tmp_path / "empty").mkdir()
    assert "there is no engine in this folder" in refusal(tmp_path / "empty")
    assert "there is no such file" in refusal(tmp_path / "none.rknn")
    other = tmp_path / "other.json"
    for text, words in (("{}", "is no manifest"), ("x", "is not JSON"), ('{"schema": "rknn-tts/set/1"}', "members")):
        other.write_text(text, encoding="utf-8")
        assert words in refusal(other)
    members = write_set(engine.parent, "piper", engine, tmp_path / "gone.rknn")
    assert "its member gone.json is not beside it" in refusal(members)


def test_a_comma_in_a_ladders_path_is_refused(tmp_path: Path) -> None:
    assert "has a comma in its path" in refusal(write_engine(tmp_path, "a,b", "piper.decoder", frames=109))
    write_engine(tmp_path / "c", "a,b", "kokoro.generator", "full")
    assert planned(tmp_path / "c").exit_code == EXIT_DONE


def test_engines_of_several_folders_need_a_place_for_the_plan(tmp_path: Path) -> None:
    one = write_engine(tmp_path / "a", "w109", "piper.decoder", frames=109)
    other = write_engine(tmp_path / "b", "full", "kokoro.generator", "full")
    assert "stand in several folders" in refusal(one, other)
    assert planned(one, other, output=str(tmp_path)).exit_code == EXIT_DONE


def test_the_schema_is_printed_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert deliver(planned(schema=True)) == EXIT_DONE
    assert capsys.readouterr().out == schema_text()
    assert "takes no engines" in refusal(tmp_path, schema=True)
    assert "plan needs ENGINES" in refusal()


def test_the_plan_is_printed_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_piper(tmp_path)
    report = planned(tmp_path)
    deliver(report)
    written = (tmp_path / "plan.json").read_text(encoding="utf-8")
    assert capsys.readouterr().out.startswith(f"{written}\nplan:  {tmp_path / 'plan.json'}\n\nnote: ")
    deliver(dataclasses.replace(report, request=dataclasses.replace(report.request, json=True)))
    assert json.loads(capsys.readouterr().out)["plan"]["plan"] == json.loads(written)
