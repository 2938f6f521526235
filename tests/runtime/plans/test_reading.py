"""Reading plans: each sentence of the reference's "Component execution plans" and "Run" has a test here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.faults import EXIT_REFUSED, BadInput
from rknn_tts_runtime.json_keys import LARGEST_BYTES
from rknn_tts_runtime.plans.reading import read_plans

ENGINE = "decoder.rknn"
RKNN = {"impl": "rknn", "artifacts": {"main": ENGINE}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with some engines; they are not opened here."""
    for name in (ENGINE, "n128.rknn", "n192.rknn", "short.rknn", "host.onnx", "a,b.rknn"):
        (tmp_path / name).write_bytes(b"RKNN")
    return tmp_path


def written(folder: Path, data: object) -> Path:
    path = folder / "plan.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def piper(**components: Any) -> dict[str, Any]:
    return {"piper_tts.exec_plan": components}


def refusal(folder: Path, data: object, **arguments: Any) -> str:
    path = written(folder, data)
    with pytest.raises(BadInput) as caught:
        read_plans(path, **arguments)
    assert caught.value.exit_code == EXIT_REFUSED
    return str(caught.value)


FORMS = {
    "session options": {"session_options": piper(decoder=RKNN)},
    "options": piper(decoder=RKNN),
    "session options, JSON text": {"session_options": {"piper_tts.exec_plan": json.dumps({"decoder": RKNN})}},
    "option, JSON text": {"piper_tts.exec_plan": json.dumps({"decoder": RKNN})},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_plan_is_the_same_whichever_form_its_file_has(folder: Path, form: str) -> None:
    path = written(folder, FORMS[form])
    plans = read_plans(path)
    assert list(plans) == ["piper"]
    plan = plans["piper"]
    assert (plan.path, plan.family, plan.left_to_host) == (path, "piper", ())
    component = plan.components["decoder"]
    assert component.name == "decoder"
    assert component.artifacts == {"main": (folder / ENGINE,)}
    assert component.params == {}


@pytest.mark.parametrize("value", [{"decoder": RKNN}, json.dumps(json.dumps({"decoder": RKNN}))])
def test_the_value_of_one_option_is_read_when_the_family_is_said(folder: Path, value: object) -> None:
    plan = read_plans(written(folder, value), family="piper")["piper"]
    assert plan.components["decoder"].artifacts == {"main": (folder / ENGINE,)}


def test_the_value_of_one_option_is_refused_when_no_family_is_said(folder: Path) -> None:
    said = refusal(folder, {"decoder": RKNN})
    assert "component 'decoder' where a session option is expected" in said
    assert "piper_tts.exec_plan" in said


def test_a_family_is_checked_when_it_is_said(folder: Path) -> None:
    assert "'pipr'" in refusal(folder, {"decoder": RKNN}, family="pipr")
    assert "has no plan of kokoro; it has those of piper" in refusal(folder, piper(decoder=RKNN), family="kokoro")
    assert list(read_plans(written(folder, piper(decoder=RKNN)), family="piper")) == ["piper"]
    both = {**piper(decoder=RKNN), "kokoro_tts.exec_plan": {}}
    assert list(read_plans(written(folder, both))) == ["piper", "kokoro"]
    assert list(read_plans(written(folder, both), family="kokoro")) == ["kokoro"]


def test_every_family_of_a_file_is_read(folder: Path) -> None:
    flow = {"impl": "rknn", "artifacts": {"main": "n192.rknn, n128.rknn"}}
    plans = read_plans(written(folder, {**piper(decoder=RKNN), "cosyvoice3.exec_plan": {"flow": flow}}))
    assert list(plans) == ["piper", "cosyvoice3"]
    # In the order of the plan: whoever walks the ladder sorts it by what the manifests say.
    assert plans["cosyvoice3"].components["flow"].artifacts["main"] == (folder / "n192.rknn", folder / "n128.rknn")


KEEPING: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "no option": ({}, ()),
    "no component": ({"piper_tts.exec_plan": {}}, ()),
    "text of no component": ({"piper_tts.exec_plan": "{}"}, ()),
    "an empty component": (piper(decoder={}), ("decoder (default)",)),
    "default": (piper(decoder={"impl": "default"}), ("decoder (default)",)),
    "default, empty fields": (
        piper(decoder={"impl": "default", "artifacts": {}, "params": {}}),
        ("decoder (default)",),
    ),
    "ggml": (piper(decoder={"impl": "ggml"}), ("decoder (ggml)",)),
    "ggml on the session's backend": (piper(decoder={"impl": "ggml", "backend": "vulkan"}), ("decoder (ggml)",)),
    "duration stages on the host": (
        piper(duration_encoder={"backend": "cpu"}, duration_flows={"backend": "cpu"}),
        ("duration_encoder (default)", "duration_flows (default)"),
    ),
    "neon": ({"sanotts.exec_plan": {"decoder": {"impl": "neon", "backend": "cpu"}}}, ("decoder (neon)",)),
}


@pytest.mark.parametrize("case", KEEPING)
def test_a_component_stays_with_the_host_application_when_rknn_is_not_said(folder: Path, case: str) -> None:
    data, left = KEEPING[case]
    plans = read_plans(written(folder, data))
    assert [plan.components for plan in plans.values()] == [{}] * len(data)
    assert tuple(name for plan in plans.values() for name in plan.left_to_host) == left


def test_what_the_reference_writes_for_piper_is_read(folder: Path) -> None:
    """The longest command line of its "Run"."""
    (folder / "enc").mkdir()
    for name in ("encoder_n128.rknn", "encoder_n192.rknn"):
        (folder / "enc" / name).write_bytes(b"RKNN")
    enc = folder / "enc"
    text = (
        f'{{"decoder":{{"impl":"rknn","artifacts":{{"main":"{folder}/{ENGINE}"}}}},"duration_encoder":{{"impl":"rknn",'
        f'"artifacts":{{"main":"{enc}/encoder_n128.rknn,{enc}/encoder_n192.rknn"}}}}}}'
    )
    plan = read_plans(written(folder, text), family="piper")["piper"]
    assert plan.components["duration_encoder"].artifacts["main"] == (
        enc / "encoder_n128.rknn",
        enc / "encoder_n192.rknn",
    )
    assert list(plan.components) == ["decoder", "duration_encoder"]


def test_components_are_in_the_order_of_the_definition(folder: Path) -> None:
    encoder = {"impl": "rknn", "artifacts": {"main": "n128.rknn"}}
    plan = read_plans(written(folder, piper(duration_flows={}, duration_encoder=encoder, decoder=RKNN)))["piper"]
    assert list(plan.components) == ["decoder", "duration_encoder"]


def test_roles_beyond_the_reference_are_read(folder: Path) -> None:
    artifacts = {"main": ENGINE, "short": "short.rknn", "host": "host.onnx"}
    plan = read_plans(written(folder, {"kokoro_tts.exec_plan": {"generator": {**RKNN, "artifacts": artifacts}}}))
    assert plan["kokoro"].components["generator"].artifacts == {
        "main": (folder / ENGINE,),
        "short": (folder / "short.rknn",),
        "host": (folder / "host.onnx",),
    }


def test_the_window_role_may_name_the_main_engine(folder: Path) -> None:
    artifacts = {"main": ENGINE, "window": ENGINE, "first": "n128.rknn"}
    plan = read_plans(written(folder, {"qwen3_tts.exec_plan": {"speech_decoder": {**RKNN, "artifacts": artifacts}}}))
    found = plan["qwen3"].components["speech_decoder"].artifacts
    assert found["window"] == found["main"] == (folder / ENGINE,)


def test_cosyvoice2_needs_a_step_or_a_ladder(folder: Path) -> None:
    def estimator(**artifacts: str) -> dict[str, Any]:
        return {"cosyvoice2.exec_plan": {"flow_estimator": {"impl": "rknn", "artifacts": artifacts}}}

    for role, name in (("step", ENGINE), ("main", "n128.rknn,n192.rknn")):
        plan = read_plans(written(folder, estimator(**{role: name})))["cosyvoice2"]
        assert list(plan.components["flow_estimator"].artifacts) == [role]
    assert "artifacts lacks step or main" in refusal(folder, estimator(host="host.onnx"))


def generator(**params: Any) -> dict[str, Any]:
    return {"kokoro_tts.exec_plan": {"generator": {**RKNN, "params": params}}}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, {"overlap": 0, "gain": False}),
        ({"overlap": 24}, {"overlap": 24, "gain": False}),
        ({"gain": True}, {"overlap": 0, "gain": True}),
    ],
)
def test_params_are_at_their_defaults_when_they_are_left_out(
    folder: Path, given: dict[str, Any], read: dict[str, Any]
) -> None:
    assert read_plans(written(folder, generator(**given)))["kokoro"].components["generator"].params == read


REFUSED: dict[str, tuple[object, tuple[str, ...]]] = {
    "unknown option": ({"pipr_tts.exec_plan": {}}, ("'pipr_tts.exec_plan'", "Did you mean piper_tts.exec_plan?")),
    "unknown session option with a plan's ending": (
        {"session_options": {"bark.exec_plan": {}}},
        ("'bark.exec_plan'", "piper_tts.exec_plan, kokoro_tts.exec_plan"),
    ),
    "misspelt ending": (
        {"session_options": {"piper_tts.exec_pln": {}}},
        ("'piper_tts.exec_pln'", "Did you mean piper_tts.exec_plan?"),
    ),
    "something beside session_options": ({"session_options": {}, "model": "x"}, ("'model' beside session_options",)),
    "session_options of another kind": ({"session_options": []}, ("session_options is a list",)),
    "a list": ([], ("is a list, expected an object",)),
    "no JSON": ("{", ("is not JSON",)),
    "no text": ("\udcff", ()),
    "a plan of another kind": ({"piper_tts.exec_plan": 1}, ("piper_tts.exec_plan is 1, expected an object",)),
    "an empty text": ({"piper_tts.exec_plan": ""}, ("piper_tts.exec_plan: is not JSON",)),
    "a plan that is null": ({"piper_tts.exec_plan": None}, ("piper_tts.exec_plan is null",)),
    "a key twice": ('{"piper_tts.exec_plan": {"decoder": {}, "decoder": {}}}', ("'decoder' twice",)),
    "a key twice in the text": (
        {"piper_tts.exec_plan": '{"decoder": {"impl": "ggml", "impl": "rknn"}}'},
        ("piper_tts.exec_plan: has 'impl' twice",),
    ),
    "unknown component": (
        piper(decodr=RKNN),
        ("no component 'decodr'", "decoder, duration_encoder, duration_flows", "Did you mean decoder?"),
    ),
    "component of another family": (
        {"kokoro_tts.exec_plan": {"decoder": RKNN}},
        ("no component 'decoder'; it has generator",),
    ),
    "component of another kind": (piper(decoder="rknn"), ("decoder is 'rknn', expected an object",)),
    "unknown field": (
        piper(decoder={**RKNN, "artefacts": {}}),
        ("decoder has no field 'artefacts'; it has impl, backend, artifacts, params", "Did you mean artifacts?"),
    ),
    "unknown implementation": (
        piper(decoder={"impl": "rknpu"}),
        ("impl is 'rknpu'; decoder runs as default, ggml, rknn", "Did you mean rknn?"),
    ),
    "implementation of another kind": (piper(decoder={"impl": None}), ("impl is null",)),
    "rknn of a component without engines": (
        piper(duration_flows=RKNN),
        ("impl is 'rknn'; duration_flows runs as default, ggml",),
    ),
    "neon elsewhere": (piper(decoder={"impl": "neon"}), ("impl is 'neon'",)),
    "rknn of sanotts": ({"sanotts.exec_plan": {"decoder": RKNN}}, ("runs as default, ggml, neon",)),
    "backend of rknn": (piper(decoder={**RKNN, "backend": "cpu"}), ("backend is 'cpu'", "leave backend out")),
    "unknown backend": (
        piper(decoder={"impl": "ggml", "backend": "vulcan"}),
        ("backend is 'vulcan'", "cpu, cuda, vulkan, metal, best", "Did you mean vulkan?"),
    ),
    "backend of another kind": (piper(decoder={"backend": 1}), ("backend is 1",)),
    "neon off the CPU": (
        {"sanotts.exec_plan": {"decoder": {"impl": "neon", "backend": "cuda"}}},
        ("impl neon runs on cpu",),
    ),
    "no artifacts": (piper(decoder={"impl": "rknn"}), ("artifacts lacks main",)),
    "no main": (
        {"qwen3_tts.exec_plan": {"speech_decoder": {"impl": "rknn", "artifacts": {"first": ENGINE}}}},
        ("speech_decoder: artifacts lacks main",),
    ),
    "unknown role": (
        piper(decoder={"impl": "rknn", "artifacts": {"mian": ENGINE}}),
        ("artifacts has no role 'mian'; impl rknn takes main, host", "Did you mean main?"),
    ),
    "role of another component": (
        piper(decoder={"impl": "rknn", "artifacts": {"main": ENGINE, "first": ENGINE}}),
        ("no role 'first'",),
    ),
    "files alone": (
        piper(decoder={"artifacts": {"main": ENGINE}}),
        ("names 'main', but impl default takes no files", 'write "impl": "rknn" too'),
    ),
    "files of ggml": (piper(decoder={"impl": "ggml", "artifacts": {"main": ENGINE}}), ("impl ggml takes no files",)),
    "artifacts of another kind": (piper(decoder={"impl": "rknn", "artifacts": [ENGINE]}), ("artifacts is a list",)),
    "an artifact of another kind": (
        piper(decoder={"impl": "rknn", "artifacts": {"main": [ENGINE]}}),
        ("artifacts.main is a list, expected a file's name", "commas between"),
    ),
    "an empty name": (
        piper(decoder={"impl": "rknn", "artifacts": {"main": " "}}),
        ("artifacts.main has an empty name",),
    ),
    "an empty name in a ladder": (
        piper(decoder={"impl": "rknn", "artifacts": {"main": f"{ENGINE},"}}),
        ("artifacts.main has an empty name",),
    ),
    "unknown param": (
        generator(overlp=1),
        ("params has no 'overlp'; impl rknn takes overlap, gain", "Did you mean overlap?"),
    ),
    "param of an implementation without": (
        piper(decoder={**RKNN, "params": {"overlap": 0}}),
        ("params has no 'overlap'; impl rknn takes none",),
    ),
    "param of ggml": (
        {"kokoro_tts.exec_plan": {"generator": {"impl": "ggml", "params": {"gain": True}}}},
        ("impl ggml takes none",),
    ),
    "a negative overlap": (generator(overlap=-1), ("params.overlap is -1, expected a whole number from 0",)),
    "an overlap that is a truth": (generator(overlap=True), ("params.overlap is true",)),
    "a broken overlap": (generator(overlap=1.5), ("params.overlap is 1.5",)),
    "a gain that is a number": (generator(gain=1), ("params.gain is 1, expected true or false",)),
    "params of another kind": (piper(decoder={**RKNN, "params": []}), ("params is a list",)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_plan_is_refused_when_it_says_what_is_not_defined(folder: Path, case: str) -> None:
    data, words = REFUSED[case]
    if data == "\udcff":
        (folder / "plan.json").write_bytes(b"\xff")
        with pytest.raises(BadInput, match="is no text"):
            read_plans(folder / "plan.json")
        return
    said = refusal(folder, data)
    assert said.startswith(str(folder / "plan.json"))
    for word in words:
        assert word in said


def test_a_refusal_names_file_option_component_and_field(folder: Path) -> None:
    said = refusal(folder, piper(decoder={"impl": "rknn", "artifacts": {"main": "gone.rknn"}}))
    assert said.startswith(f"{folder / 'plan.json'}: piper_tts.exec_plan: decoder: artifacts.main names 'gone.rknn'")


def test_other_session_options_are_the_host_applications(folder: Path) -> None:
    options = {**piper(decoder=RKNN), "qwen3_tts.conv_weight_type": "f16"}
    assert list(read_plans(written(folder, {"session_options": options}))) == ["piper"]


def test_a_plan_is_refused_when_it_is_nested_without_end(folder: Path) -> None:
    assert "nested too deep" in refusal(folder, "[" * 200_000)
    assert "nested too deep" in refusal(folder, {"piper_tts.exec_plan": "[" * 200_000})


def test_a_plan_is_refused_when_a_number_has_no_end(folder: Path) -> None:
    data = json.dumps(generator(overlap=0)).replace("0", "1" * 5000)
    assert "a number of 5000 digits" in refusal(folder, data)


def test_a_plan_is_refused_when_it_is_larger_than_any(folder: Path) -> None:
    path = folder / "plan.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(BadInput, match=f"{LARGEST_BYTES} bytes at most"):
        read_plans(path)


def test_a_pipe_without_end_is_not_read_to_the_end() -> None:
    with pytest.raises(BadInput, match="at most"):
        read_plans(Path("/dev/zero"))


def test_a_plan_is_refused_when_there_is_none(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.json: cannot be read as a plan"):
        read_plans(folder / "none.json")
    with pytest.raises(BadInput, match="cannot be read as a plan"):
        read_plans(folder)


def test_names_resolve_under_the_model_when_one_is_said(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("plans")
    path = written(elsewhere, piper(decoder=RKNN))
    with pytest.raises(BadInput, match="there is no file"):
        read_plans(path)
    (folder / "model.gguf").write_bytes(b"GGUF")
    for model in (folder, folder / "model.gguf"):
        assert read_plans(path, model)["piper"].components["decoder"].artifacts["main"] == (folder / ENGINE,)
    with pytest.raises(BadInput, match="there is no such model"):
        read_plans(path, folder / "none")


def test_names_do_not_resolve_under_the_working_directory(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path_factory.mktemp("plans"), piper(decoder=RKNN))
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput, match="there is no file"):
        read_plans(path)


def test_a_plan_is_read_when_its_own_name_is_relative(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(folder, piper(decoder=RKNN))
    monkeypatch.chdir(folder)
    found = read_plans(Path("plan.json"))["piper"].components["decoder"].artifacts["main"]
    assert found == (Path(os.path.realpath(folder)) / ENGINE,)
