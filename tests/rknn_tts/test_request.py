from __future__ import annotations

import dataclasses

import pytest

from contracts.errors import UserInput
from rknn_tts.request import EVERY, Request, options, request_from_make, taken_from_environment


def test_options_cover_every_field_but_the_command() -> None:
    fields = [field.name for field in dataclasses.fields(Request)]
    assert ["command", *(option.name for option in options())] == fields


@pytest.mark.parametrize("command", EVERY)
def test_options_have_one_spelling_each_when_asked_for_a_command(command: str) -> None:
    found = options(command)
    assert len({option.flag for option in found}) == len({option.variable for option in found}) == len(found)
    assert all(option.help.endswith(".") for option in found)


@pytest.mark.parametrize(
    ("name", "flag", "variable"),
    [
        ("target", "--target", "TARGET"),
        ("decoder_mask", "--decoder-mask", "DECODER_MASK"),
        ("output", "--output", "OUT"),
        ("timeout_s", "--timeout", "TIMEOUT"),
        ("memory_gb", "--memory", "MEMORY"),
        ("accept_regtask", "--accept-regtask", "ACCEPT_REGTASK"),
    ],
)
def test_option_is_spelt_for_the_command_line_and_for_make(name: str, flag: str, variable: str) -> None:
    option = next(option for option in options() if option.name == name)
    assert (option.flag, option.variable) == (flag, variable)


@pytest.mark.parametrize(
    ("command", "required"),
    [
        ("engine", {"family", "target"}),
        ("export", {"family"}),
        ("compile", {"model", "target"}),
        ("inspect", {"model"}),
        ("diff", {"a", "b"}),
        ("bench", {"family"}),
        ("families", set()),
    ],
)
def test_option_is_required_when_the_command_cannot_do_without(command: str, required: set[str]) -> None:
    assert {option.name for option in options(command) if option.required} == required


def test_request_from_make_reads_every_kind_of_value() -> None:
    environment = {
        "FAMILY": "piper",
        "TARGET": "rk3588",
        "WINDOW": "93",
        "DECODER_MASK": "1",
        "FORCE": "no",
        "OUT": "a folder/$x",
        "TIMEOUT": "1.5",
        "ACCEPT_REGTASK": "v2:0x1014:0:0x7 lite:0x1028:0:0x7ff",
        "PATH": "/bin",
        "MODEL": "of another command",
    }
    given = "FAMILY= TARGET= WINDOW=93"
    assert request_from_make("engine", environment, given) == Request(
        command="engine",
        family="piper",
        target="rk3588",
        window=93,
        decoder_mask=True,
        output="a folder/$x",
        timeout_s=1.5,
        accept_regtask=["v2:0x1014:0:0x7", "lite:0x1028:0:0x7ff"],
    )


def test_request_from_make_keeps_the_default_when_a_variable_is_empty() -> None:
    assert request_from_make("engine", {"TOOLKIT": "", "WINDOW": ""}, "TOOLKIT= WINDOW=") == Request(command="engine")


@pytest.mark.parametrize(
    ("environment", "given", "sentence"),
    [
        ({"WINDOW": "wide"}, "WINDOW=", "WINDOW=wide: a whole number is expected."),
        ({"WINDOW": "1.5"}, "WINDOW=", "WINDOW=1.5: a whole number is expected."),
        ({"TIMEOUT": "soon"}, "TIMEOUT=", "TIMEOUT=soon: a number is expected."),
        ({"FORCE": "perhaps"}, "FORCE=", "FORCE=perhaps: 1 or 0 is expected."),
        ({}, "TARGT=", "There is no variable TARGT. Did you mean TARGET?"),
        ({}, "XYZZY=", "There is no variable XYZZY. make engine takes FAMILY, TARGET, "),
        ({}, "MODEL=", "make engine takes no MODEL; it takes FAMILY, TARGET, "),
    ],
)
def test_request_from_make_refuses_when_a_variable_cannot_be_read(
    environment: dict[str, str], given: str, sentence: str
) -> None:
    with pytest.raises(UserInput) as refused:
        request_from_make("engine", environment, given)
    assert str(refused.value).startswith(sentence)


def test_taken_from_environment_names_what_is_not_on_makes_command_line() -> None:
    environment = {"TARGET": "rk3588", "FAMILY": "piper", "JSON": "", "PATH": "/bin", "MODEL": "x.onnx"}
    assert taken_from_environment("engine", environment, "FAMILY= ") == ["TARGET=rk3588"]
