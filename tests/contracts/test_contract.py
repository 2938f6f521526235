"""Windows are consistent, contracts survive metadata, and the short form always fits an engine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.contract import (
    METADATA_KEY,
    Cache,
    CacheSlice,
    CarriedState,
    CodeStep,
    Contract,
    Drift,
    HostHalf,
    Source,
    TensorSpec,
    Trim,
    Window,
    contract_from_metadata,
    contract_to_metadata,
    short_contract,
)
from contracts.contract_faults import contract_fault
from contracts.errors import UserInput
from tests.contracts.samples import CONTRACT, INPUTS, SHA, SOURCE, STEP, STEP_CONTRACT


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((109, 45, 32, 31, 256), "left \\+ emitted \\+ right must be the window's 109 frames"),
        ((109, 46, 32, 32, 256), "must be the window's 109 frames"),
        ((64, 0, 32, 32, 256), "positive sizes"),
        ((0, 0, 0, 0, 256), "positive sizes"),
        ((109, 45, 32, 32, 0), "positive sizes"),
        ((109, 109, -1, 1, 256), "positive sizes"),
        ((109, 110, 0, -1, 256), "positive sizes"),
    ],
)
def test_window_raises_when_sizes_do_not_add_up(sizes: tuple[int, int, int, int, int], says: str) -> None:
    frames, emitted, left, right, hop = sizes
    with pytest.raises(ValueError, match=says):
        Window(frames=frames, emitted=emitted, left=left, right=right, hop=hop, sample_rate=None)


def test_window_takes_no_context_when_all_is_emitted() -> None:
    assert Window(frames=64, emitted=64, left=0, right=0, hop=1, sample_rate=None).frames == 64


@pytest.mark.parametrize(
    "contract",
    [CONTRACT, STEP_CONTRACT, Contract(None, None, Source("x.onnx", SHA, "checkpoint"), (TensorSpec("x", (1,)),), ())],
)
def test_contract_survives_metadata_when_written_and_read(contract: Contract) -> None:
    metadata = contract_to_metadata(contract)
    assert list(metadata) == ["rknn-tts/contract/1"]
    assert contract_from_metadata({"other": "entry", **metadata}) == contract


def test_contract_metadata_is_strict_json_when_figures_are_not_finite() -> None:
    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    json.loads(contract_to_metadata(CONTRACT)[METADATA_KEY], parse_constant=refuse)


def test_contract_metadata_is_the_same_text_when_written_twice() -> None:
    assert contract_to_metadata(CONTRACT) == contract_to_metadata(replace(CONTRACT))


def test_contract_from_metadata_is_none_when_there_is_no_entry() -> None:
    assert contract_from_metadata({}) is None
    assert contract_from_metadata({"author": "someone"}) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", f"the metadata entry {METADATA_KEY} is not JSON"),
        ("", "is not JSON"),
        ("[]", "contract: Contract was expected"),
        ("{}", "contract: the key 'family' is missing"),
        ('{"family": null, "stage": null}', "contract: the key 'source' is missing"),
    ],
)
def test_contract_from_metadata_says_what_is_wrong_when_entry_is_broken(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|expected|missing") as caught:
        contract_from_metadata({METADATA_KEY: text})
    assert says in str(caught.value)


def test_contract_from_metadata_names_the_window_when_it_does_not_add_up() -> None:
    data = json.loads(contract_to_metadata(CONTRACT)[METADATA_KEY])
    data["window"]["frames"] = 110
    with pytest.raises(ValueError, match="window's 110 frames"):
        contract_from_metadata({METADATA_KEY: json.dumps(data)})


def test_short_contract_holds_what_a_board_checks_when_it_fits() -> None:
    text = short_contract(CONTRACT, "rk3588", "2.3.2")
    assert len(text.encode()) < 1024
    assert json.loads(text) == {
        "schema": "rknn-tts/contract/1",
        "family": "piper",
        "stage": "decoder",
        "target": "rk3588",
        "toolkit": "2.3.2",
        "source": "0123456789abcdef",
        "in": [["z", [1, 192, 109], "float32"], ["ids", [1, 7], "int64"]],
        "out": [["output", [1, 1, 1, 27904], "float32"]],
        "window": [109, 45, 32, 32, 256, 22050],
        "cache": 12,
    }


def test_short_contract_says_the_role_where_there_is_one() -> None:
    data = json.loads(short_contract(replace(CONTRACT, role="short"), "rk3588", "2.3.2"))
    assert (data.pop("role"), data) == ("short", json.loads(short_contract(CONTRACT, "rk3588", "2.3.2")))


def test_contract_without_a_role_is_read_as_one_engine_alone() -> None:
    text = json.loads(contract_to_metadata(CONTRACT)[METADATA_KEY])
    text.pop("role")  # as exports before there were sets
    read = contract_from_metadata({METADATA_KEY: json.dumps(text)})
    assert read == CONTRACT
    assert CONTRACT.role is None


def test_short_contract_holds_the_step_and_says_that_random_weights_are_a_stand_in() -> None:
    text = short_contract(STEP_CONTRACT, "rk3588", "2.3.2")
    assert len(text.encode()) < 1024
    assert json.loads(text) == {
        "schema": "rknn-tts/contract/1",
        "family": "qwen3",
        "stage": "speech_decoder",
        "role": "window",
        "target": "rk3588",
        "toolkit": "2.3.2",
        "source": "0123456789abcdef",
        "stand_in": True,
        "in": [["hidden", [1, 512, 37], "float32"], ["cache", [1303424], "float32"]],
        "out": [["audio", [1, 1, 71040], "float32"], ["cache_out", [1303424], "float32"]],
        "window": None,
        "step": [37, 1920, 24000, 12],
        "cache": 1303424,
    }


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"codes": 0, "emitted": 0, "context": 0}, "positive sizes"),
        ({"samples_per_code": 0}, "positive sizes"),
        ({"sample_rate": 0}, "positive sizes"),
        ({"kv_len": -1}, "positive sizes"),
        ({"context": -1, "emitted": 38}, "positive sizes"),
        ({"context": 24}, "context \\+ emitted must be the step's 37 codes"),
    ],
)
def test_step_raises_when_sizes_do_not_add_up(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(STEP, **changes)


def test_short_contract_is_null_where_the_stage_has_none() -> None:
    data = json.loads(short_contract(replace(CONTRACT, window=None, cache=None), "rk3588", "2.3.2"))
    assert (data["window"], data["cache"]) == (None, None)


def test_short_contract_counts_tensors_when_they_are_too_many() -> None:
    many = tuple(TensorSpec(f"a rather long name of input {i}", (1, 2, 3)) for i in range(100))
    text = short_contract(replace(CONTRACT, inputs=many), "rk3588", "2.3.2")
    assert len(text) < 1024
    assert (json.loads(text)["in"], json.loads(text)["out"]) == (100, 1)


specs = st.lists(
    st.builds(TensorSpec, st.text(max_size=90), st.lists(st.integers(0, 2**40), max_size=6).map(tuple)), max_size=30
)
sizes = st.integers(1, 2**40)


@given(inputs=specs, outputs=specs, emitted=sizes, hop=sizes, numel=sizes)
def test_short_contract_is_ascii_json_under_1024_bytes_whatever_the_tensors(
    inputs: list[TensorSpec], outputs: list[TensorSpec], emitted: int, hop: int, numel: int
) -> None:
    contract = replace(
        CONTRACT,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        window=Window(frames=emitted, emitted=emitted, left=0, right=0, hop=hop, sample_rate=22050),
        cache=Cache(numel, ()),
    )
    text = short_contract(contract, "rk3588", "2.3.2")
    assert text.isascii()
    assert len(text) < 1024
    json.loads(text)


@pytest.mark.parametrize(
    "changes",
    [{"family": "f" * 900}, {"stage": "\U0001f600" * 100}, {"window": Window(10**600, 10**600, 0, 0, 1, None)}],
)
def test_short_contract_is_refused_in_a_sentence_when_it_cannot_fit(changes: dict[str, Any]) -> None:
    with pytest.raises(UserInput, match=r"does not fit inside an engine: it takes \d+ bytes, under 1024"):
        short_contract(replace(CONTRACT, inputs=INPUTS * 100, **changes), "rk3588", "2.3.2")


def test_contract_from_metadata_says_so_when_it_is_nested_too_deep() -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        contract_from_metadata({METADATA_KEY: "[" * 100_000})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"host": HostHalf("../piper-host.onnx", SHA)}, "host half"),
        ({"host": HostHalf("/piper-host.onnx", SHA)}, "host half"),
        ({"host": HostHalf("", SHA)}, "host half"),
        ({"host": HostHalf("..", SHA)}, "host half"),
        ({"host": HostHalf("a\0.onnx", SHA)}, "host half"),
        ({"host": HostHalf("piper-decoder-w109.json", SHA)}, "host half"),
        ({"host": HostHalf("n" * 156 + ".onnx", SHA)}, "host half"),
        ({"source": replace(SOURCE, name="../voice.onnx")}, "source"),
        ({"source": replace(SOURCE, name="..")}, "source"),
        ({"source": replace(SOURCE, name="")}, "source"),
        ({"source": replace(SOURCE, name="a\udcffb.onnx")}, "source"),
        ({"family": "../piper"}, "family"),
        ({"family": "f" * 65}, "family"),
        ({"stage": ""}, "stage"),
        ({"role": "../short"}, "role"),
        ({"role": ""}, "role"),
        ({"cache": Cache(0, ())}, "cache"),
        ({"cache": Cache(6, (CacheSlice("key", 3, (2, 2)),))}, "cache slice 'key'"),
        ({"cache": Cache(6, (CacheSlice("key", -1, (2, 2)),))}, "cache slice 'key'"),
        ({"cache": Cache(6, (CacheSlice("key", 0, (2, 0)),))}, "cache slice 'key'"),
        ({"cache": Cache(6, (CacheSlice("value", 3, (3,)), CacheSlice("key", 0, (2, 2))))}, "cache slice 'value'"),
        ({"step": CodeStep(109, 256, 22050, None, None, 0, 109)}, "cache"),
        ({"step": CodeStep(109, 256, 22050, None, None, 0, 109), "cache": None}, "step"),
        ({"drift": Drift("durations", {}, {"n": (1, -2, 8)}, None, "")}, "drift's noise 'n'"),
        ({"drift": Drift("durations", {}, {"n": (1 << 20, 1 << 20)}, None, "")}, "drift's noise 'n'"),
    ],
)
def test_contract_fault_names_what_would_leave_its_folder_or_not_fit(changes: dict[str, Any], says: str) -> None:
    fault = contract_fault(replace(CONTRACT, **changes))
    assert fault is not None
    assert fault.startswith(f"its {says} ")
    assert fault.isprintable()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cache": Cache(1303423, ())}, "its cache has 1303423 numbers and its input 'cache' 1303424"),
        ({"outputs": STEP_CONTRACT.outputs[:1]}, "its cache has 1303424 numbers and its output 'cache_out' 0"),
        (
            {"step": replace(STEP, codes=64, emitted=64, context=0)},
            "its step takes 64 codes and its input 'hidden' [1, 512, 37]",
        ),
        (
            {"step": replace(STEP, samples_per_code=960)},
            "its step of 37 codes gives 35520 samples and none of its outputs has so many",
        ),
    ],
)
def test_contract_fault_names_what_contradicts_the_step(changes: dict[str, Any], says: str) -> None:
    assert contract_fault(STEP_CONTRACT) is None
    assert contract_fault(replace(STEP_CONTRACT, **changes)) == says


TRIMMED_CONTRACT = replace(
    CONTRACT,
    inputs=(*CONTRACT.inputs, TensorSpec("place", (1, 3, 1, 1))),
    outputs=(TensorSpec("output", (1, 1, 1, 49 * 256)),),
    trim=Trim("place", 49),
)
"""Of the 109 frames, 45 of them emitted, the samples of two more on either side."""


@pytest.mark.parametrize("frames", [45, 47, 109])
def test_contract_takes_a_trim_that_keeps_what_is_emitted_and_as_much_on_either_side(frames: int) -> None:
    assert replace(CONTRACT, trim=Trim("place", frames)).trim == Trim("place", frames)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"trim": Trim("place", 43)}, "a window's emitted frames and as many on either side"),
        ({"trim": Trim("place", 48)}, "a window's emitted frames and as many on either side"),
        ({"trim": Trim("place", 111)}, "a window's emitted frames and as many on either side"),
        ({"window": None}, "a window's emitted frames and as many on either side"),
        ({"window": Window(109, 45, 30, 34, 256, 22050)}, "as much context left as right"),
    ],
)
def test_contract_raises_when_a_trim_does_not_fit_its_window(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(TRIMMED_CONTRACT, **changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"inputs": CONTRACT.inputs}, "its trim's input 'place' is no input of the shape [1, 3, 1, 1]"),
        (
            {"inputs": (*CONTRACT.inputs, TensorSpec("place", (1, 1, 1, 3)))},
            "its trim's input 'place' is no input of the shape [1, 3, 1, 1]",
        ),
        ({"trim": Trim("z", 49)}, "its trim's input 'z' is no input of the shape [1, 3, 1, 1]"),
        (
            {"outputs": CONTRACT.outputs},
            "its trim leaves 49 frames of 256 samples and its output has 27904",
        ),
        ({"trim": Trim("place", 51)}, "its trim leaves 51 frames of 256 samples and its output has 12544"),
        ({"outputs": ()}, "its trim leaves 49 frames of 256 samples and it has 0 outputs"),
    ],
)
def test_contract_fault_names_what_contradicts_the_trim(changes: dict[str, Any], says: str) -> None:
    assert contract_fault(TRIMMED_CONTRACT) is None
    assert contract_fault(replace(TRIMMED_CONTRACT, **changes)) == says


KEPT = TensorSpec("kv", (4, 8, 100, 128))
STATE_CONTRACT = replace(
    CONTRACT,
    inputs=(TensorSpec("x", (1, 80, 1, 32)), KEPT),
    outputs=(
        TensorSpec("kv_next", KEPT.shape),
        TensorSpec("kv_new", (4, 8, 32, 128)),
        TensorSpec("other", (4, 8, 100, 1)),
    ),
)


@pytest.mark.parametrize("kept", [CarriedState("kv", "kv_next"), CarriedState("kv", "kv_new", 2)])
def test_contract_fault_takes_states_that_are_replaced_or_written_along_an_axis(kept: CarriedState) -> None:
    assert contract_fault(replace(STATE_CONTRACT, state=(kept,))) is None


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        (CarriedState("k", "kv_next"), "its state 'k' is no input, or 'kv_next' no output"),
        (CarriedState("kv", "x"), "its state 'kv' is no input, or 'x' no output"),
        (CarriedState("kv", "other"), "its state 'kv' is not what 'other' gives"),
        (CarriedState("kv", "kv_new"), "its state 'kv' is not what 'kv_new' gives"),
        (CarriedState("kv", "kv_new", 1), "its state 'kv' is not what 'kv_new' gives"),
        (CarriedState("kv", "kv_new", 4), "its state 'kv' has no axis 4 that 'kv_new' is written along"),
        (CarriedState("x", "kv_new", -1), "its state 'x' has no axis -1 that 'kv_new' is written along"),
        (CarriedState("x", "kv_new", 2), "its state 'x' has no room for what 'kv_new' gives of a step"),
    ],
)
def test_contract_fault_names_what_contradicts_the_state(kept: CarriedState, says: str) -> None:
    assert contract_fault(replace(STATE_CONTRACT, state=(kept,))) == says


def test_contract_fault_names_a_rule_that_is_none() -> None:
    assert contract_fault(replace(CONTRACT, disabled_rules=("swap_expand_transpose",))) is None
    assert str(contract_fault(replace(CONTRACT, disabled_rules=("a b",)))).startswith("its disabled rule 'a b' ")


def test_contract_fault_takes_a_step_of_four_axes_whose_engine_drops_the_context() -> None:
    made = replace(
        STEP_CONTRACT,
        inputs=(TensorSpec("hidden", (1, 512, 37, 1)), TensorSpec("cache", (1, 1, 1, 1303424))),
        outputs=(TensorSpec("audio", (1, 1, 1, 23040)), TensorSpec("cache_out", (1, 1303424, 1, 1))),
    )
    assert contract_fault(made) is None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"family": None, "stage": None, "host": None},
        {"role": "short"},
        {"source": replace(SOURCE, name="voix à soi [1]\u3000*.onnx")},
        {"source": replace(SOURCE, name="some-voice 1.2.0: voice.onnx", kind="package")},
        {"source": replace(SOURCE, name="...onnx")},
        {"source": replace(SOURCE, name="n" * 155 + ".onnx")},
    ],
)
def test_contract_fault_is_none_when_names_are_plain(changes: dict[str, Any]) -> None:
    assert contract_fault(replace(CONTRACT, **changes)) is None
