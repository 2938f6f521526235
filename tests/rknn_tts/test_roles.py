from __future__ import annotations

import io
from dataclasses import replace

import pytest

from contracts.contract import Cache, CacheSlice, Contract, Source
from contracts.errors import ToolFailure
from contracts.verdicts import Measurement, at_least, unproven
from rknn_tts.progress import PlainSay
from rknn_tts.roles import RoleSay, measurements_of, shared_cache, stage_text, verdicts_of
from tests.rknn_tts.workshop import Heard


@pytest.mark.parametrize(
    ("family", "stage", "role", "text"),
    [
        ("kokoro", "generator", "short", "kokoro generator, short"),
        ("piper", "decoder", None, "piper decoder"),
        ("piper", None, None, "piper"),
        (None, None, None, "a foreign ONNX"),
    ],
)
def test_stage_text_says_what_an_engine_is(family: str | None, stage: str | None, role: str | None, text: str) -> None:
    assert stage_text(family, stage, role) == text


def test_verdicts_of_differ_in_their_gates_name_alone() -> None:
    given = (at_least("simulator", 41.5, 40.0, "dB"), unproven("log.regtask", "only a board"))
    told = verdicts_of("short", given)
    assert [verdict.gate for verdict in told] == ["short.simulator", "short.log.regtask"]
    assert [(v.measured, v.threshold, v.unit, v.status, v.detail) for v in told] == [
        (v.measured, v.threshold, v.unit, v.status, v.detail) for v in given
    ]


def test_measurements_of_differ_in_their_name_alone() -> None:
    (told,) = measurements_of("full", [Measurement(name="build.wall", measured=1.5, unit="s", reason="why")])
    assert told == Measurement(name="full.build.wall", measured=1.5, unit="s", reason="why")


def test_role_say_puts_the_role_behind_the_first_words() -> None:
    heard = Heard()
    say = RoleSay(heard, "short")
    say.step("building for rk3588: fusing: TilingPass")
    say.step("checking the graph")
    say.note("as it is")
    assert heard.steps == ["building for rk3588 (short): fusing: TilingPass", "checking the graph (short)"]
    assert heard.notes == ["as it is"]


def test_role_say_has_a_line_for_each_engines_step_where_lines_are_written() -> None:
    stream = io.StringIO()
    plain = PlainSay(stream, clock=lambda: 0.0)
    for role in ("full", "short"):
        for stage in ("loading", "fusing"):
            RoleSay(plain, role).step(f"building for rk3588: {stage}")
    assert stream.getvalue() == "building for rk3588 (full)\nbuilding for rk3588 (short)\n"


def keeping(role: str, cache: Cache | None) -> Contract:
    return Contract("qwen3", "speech_decoder", Source("random", "ab" * 32, "random"), (), (), cache=cache, role=role)


KEYS, VALUES = CacheSlice("keys", 0, (6,)), CacheSlice("values", 6, (6,))


def test_shared_cache_is_the_one_of_all_that_keep_one() -> None:
    cache = Cache(12, (KEYS, VALUES))
    assert shared_cache([keeping("window", None), keeping("main", cache), keeping("first", cache)]) == cache
    assert shared_cache([keeping("main", None), keeping("first", None)]) is None


@pytest.mark.parametrize("other", [Cache(13, (KEYS, VALUES)), Cache(12, (replace(KEYS, name="values"), VALUES))])
def test_shared_cache_is_refused_when_two_lay_it_out_in_other_ways(other: Cache) -> None:
    with pytest.raises(ToolFailure, match="main lays it out in another way than first"):
        shared_cache([keeping("main", Cache(12, (KEYS, VALUES))), keeping("window", None), keeping("first", other)])
