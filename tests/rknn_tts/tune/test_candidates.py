"""What is swept of a stage, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.errors import UserInput
from converters.stages import Stage
from rknn_tts.request import Request
from rknn_tts.tune.candidates import DEFAULT_VALUES, candidates_of, knob_of
from tests.rknn_tts.stand_in_stage import Doubled

ASKED = Request("tune", family="twin", target="rk3588")


def stage(*options: str) -> Stage:
    return Doubled([], {}).stage(options=frozenset(options))


LADDER, ONE_WIDTH, STEPS = stage("windows", "window", "context"), stage("window", "context"), stage("codes")


def names(of: Stage, **asked: object) -> list[str]:
    return [candidate.name for candidate in candidates_of(of, replace(ASKED, **asked))]  # type: ignore[arg-type]


def test_width_stands_for_every_form_when_it_has_no_letter() -> None:
    assert names(LADDER, windows="256t,128,64m,300p") == ["64m", "128p", "128m", "128t", "256t", "300p"]


def test_form_is_swept_once_when_it_is_named_beside_its_width() -> None:
    assert names(LADDER, windows="128,128m") == ["128p", "128m", "128t"]


def test_contexts_are_swept_with_every_window_when_they_are_given() -> None:
    assert names(LADDER, windows="128m", contexts="32,28") == ["128m c28", "128m c32"]
    assert names(ONE_WIDTH, windows="96,64", contexts="9") == ["64 c9", "96 c9"]


def test_default_values_are_swept_when_none_are_given() -> None:
    assert len(names(LADDER)) == 3 * len(DEFAULT_VALUES["windows"].split(","))
    assert ",".join(names(ONE_WIDTH)) == DEFAULT_VALUES["window"]
    assert ",".join(names(STEPS)) == DEFAULT_VALUES["codes"]


def test_request_of_a_candidate_asks_for_its_engine_alone() -> None:
    asked = replace(ASKED, windows="128", contexts="28", output="sweep.json", rungs=2)
    plain, masked, trimmed = (candidate.request(asked) for candidate in candidates_of(LADDER, asked))
    assert [one.windows for one in (plain, masked, trimmed)] == ["128", "128m", "128t"]
    assert (plain.command, plain.window, plain.context, plain.output) == ("engine", None, 28, None)
    (one,) = candidates_of(ONE_WIDTH, replace(ASKED, windows="96"))
    assert (one.request(ASKED).window, one.request(ASKED).windows, one.request(ASKED).context) == (96, None, None)
    (step,) = candidates_of(STEPS, replace(ASKED, codes="16"))
    assert (step.request(ASKED).codes, step.request(ASKED).window) == ("16", None)


def test_stage_is_swept_over_windows_when_it_has_ladders_of_them() -> None:
    assert [knob_of(one) for one in (LADDER, ONE_WIDTH, STEPS)] == ["windows", "window", "codes"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("lengths",), "twin net takes what it is given whole, in the shortest engine that holds it"),
        (("widths", "relative"), "twin net takes what it is given whole"),
        (("config",), "twin net has one engine of one size, so it has nothing to tune."),
    ],
)
def test_stage_is_refused_when_it_has_nothing_to_tune(options: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserInput, match=sentence):
        knob_of(stage(*options))


@pytest.mark.parametrize(
    ("of", "asked", "sentence"),
    [
        (LADDER, {"windows": "128x"}, "--windows 128x: different widths in frames are expected, at most 16 of them, e"),
        (LADDER, {"windows": ""}, "--windows : different widths"),
        (LADDER, {"windows": "128,,256"}, "--windows 128,,256: different widths"),
        (LADDER, {"windows": "128,128"}, "--windows 128,128: different widths"),
        (LADDER, {"windows": ",".join(map(str, range(100, 117)))}, "--windows 100,101,"),
        (LADDER, {"codes": "16"}, "twin net is tuned over --windows, and takes no --codes."),
        (LADDER, {"contexts": "8,8"}, "--contexts 8,8: different whole numbers of frames are expected"),
        (ONE_WIDTH, {"windows": "96m"}, "--windows 96m: this stage has one form of a window"),
        (
            ONE_WIDTH,
            {"windows": "96;64"},
            "--windows 96;64: different widths in frames are expected, at most 16 of the",
        ),
        (STEPS, {"codes": "many"}, "--codes many: different whole numbers of codes are expected"),
        (STEPS, {"windows": "96"}, "twin net is tuned over --codes, and takes no --windows."),
        (STEPS, {"contexts": "9"}, "twin net is tuned over --codes, and takes no --contexts."),
    ],
)
def test_list_is_refused_in_one_sentence_when_it_is_none(of: Stage, asked: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserInput) as refused:
        names(of, **asked)
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_families_of_the_registry_are_tuned_or_refused_in_a_sentence() -> None:
    from converters.registry import STAGES

    found = {}
    for one in STAGES:
        try:
            found[f"{one.family} {one.name}"] = knob_of(one)
        except UserInput:
            found[f"{one.family} {one.name}"] = "refused"
    assert {name: knob for name, knob in found.items() if knob != "refused"} == {
        "piper decoder": "windows",
        "inflect decoder": "windows",
        "kokoro generator": "window",
        "qwen3 speech_decoder": "codes",
    }
