"""Streams of codes through host half, steps and events, with twins in the NPU's place, against the whole decode."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput, Mismatch, RunFault
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.qwen3 import CodesDecoder, open_qwen3
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from gates.snr import snr_db
from tests.runtime.fake_backends import FakeBackend
from tests.runtime.speaking.small_speech_decoders import (
    CHANNELS,
    NUMEL,
    PAST,
    QUANTIZERS,
    RATE,
    decoded,
    drawn_codes,
    plan_of,
    written_step,
)

MAIN, FIRST = 8, 5
LENGTH = 30
CODES = drawn_codes(LENGTH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Engines of all roles, with twins."""
    folder = tmp_path_factory.mktemp("qwen3")
    written_step(folder, "main", MAIN)
    written_step(folder, "first", FIRST)
    written_step(folder, "window", 7, context=4)
    return folder


def opened(plan: Plan) -> CodesDecoder:
    return open_qwen3(plan, TwinBackend(threads=1))


def arriving(*cuts: int) -> Iterator[NDArray[np.int64]]:
    return (CODES[..., start:stop] for start, stop in pairwise([0, *cuts, LENGTH]))


@pytest.mark.parametrize("roles", [("main",), ("main", "first"), ("main", "window"), ("main", "first", "window")])
@pytest.mark.parametrize("cuts", [(), (1, 2, 3, 7, 7, 20)], ids=str)
def test_a_stream_is_the_whole_decode(folder: Path, roles: tuple[str, ...], cuts: tuple[int, ...]) -> None:
    decoder = opened(plan_of(folder, **{role: f"{role}.rknn" for role in roles}))
    samples = np.concatenate(list(decoder.stream(arriving(*cuts), Stopwatch())))
    assert snr_db(decoded(CODES), samples) >= 120
    decoder.close()


def test_the_small_step_gives_the_first_audio(folder: Path) -> None:
    decoder = opened(plan_of(folder, main="main.rknn", first="first.rknn"))
    watch = Stopwatch()
    sizes = [piece.size // RATE for piece in decoder.stream(arriving(), watch)]
    assert sizes == [FIRST, MAIN, MAIN, MAIN, 1]
    assert {name: each.runs for name, each in watch.stages.items()} == {
        "host half": 1,
        "speech_decoder first": 2,
        "speech_decoder main": 3,
    }


def test_no_more_codes_are_read_than_the_first_audio_needs(folder: Path) -> None:
    read: list[int] = []

    def endless() -> Iterator[NDArray[np.int64]]:
        while True:
            read.append(1)
            yield CODES[..., :1]

    decoder = opened(plan_of(folder, main="main.rknn", first="first.rknn"))
    assert next(decoder.stream(endless(), Stopwatch())).size == FIRST * RATE
    assert len(read) == FIRST


def test_codes_that_are_all_there_are_decoded_with_the_cache_whatever_streams(folder: Path) -> None:
    decoder = opened(plan_of(folder, main="main.rknn", window="window.rknn"))
    watch = Stopwatch()
    assert snr_db(decoded(CODES), decoder.decode(CODES, watch)) >= 120
    assert set(watch.stages) == {"host half", "speech_decoder main"}
    with pytest.raises(BadInput, match="no codes"):
        decoder.decode(CODES[..., :0], watch)


def test_what_a_decoder_tells_of_itself(folder: Path) -> None:
    decoder = opened(plan_of(folder, main="main.rknn", first="first.rknn"))
    assert (decoder.sample_rate, decoder.samples_per_code, decoder.codebooks) == (24000, RATE, QUANTIZERS)
    assert any("main.rknn" in note and "random" in note for note in decoder.notes)


def test_engines_that_take_codes_need_no_host_half(tmp_path: Path) -> None:
    written_step(tmp_path, "main", MAIN, seam="codes")
    (tmp_path / "host.onnx").unlink()
    decoder = opened(plan_of(tmp_path, main="main.rknn"))
    assert snr_db(decoded(CODES), decoder.decode(CODES, Stopwatch())) >= 120


def test_the_main_engine_named_as_window_is_opened_once(tmp_path: Path) -> None:
    written_step(tmp_path, "main", 37)
    backend = FakeBackend()
    decoder = open_qwen3(plan_of(tmp_path, main="main.rknn", window="main.rknn"), backend)
    assert backend.events == ["open main"]
    watch = Stopwatch()
    pieces = list(decoder.stream([CODES], watch))
    assert [piece.size // RATE for piece in pieces] == [12, 12, 6]  # events of 25+12, as the reference's
    assert watch.stages["speech_decoder window"].runs == 3
    decoder.close()
    decoder.close()
    assert backend.events == ["open main", "close main"]


def test_the_main_engine_named_as_window_must_hold_an_event(tmp_path: Path) -> None:
    written_step(tmp_path, "main", 36)
    with pytest.raises(BadInput, match=r"main\.rknn \(window\) takes 36 codes, and an event has 25\+12"):
        opened(plan_of(tmp_path, main="main.rknn", window="main.rknn"))


def test_a_step_reads_the_cache_that_the_one_before_wrote_without_a_copy(folder: Path) -> None:
    caches: list[NDArray[np.float32]] = []

    def compute(feed: object) -> dict[str, NDArray[np.float32]]:
        caches.append(np.full((1, CHANNELS, 1, PAST), len(caches) + 1, np.float32))
        return {"audio": np.zeros(MAIN * RATE, np.float32), "cache_out": caches[-1]}

    backend = FakeBackend(compute=compute)
    decoder = open_qwen3(plan_of(folder, main="main.rknn"), backend)
    list(decoder.stream([CODES], Stopwatch()))
    feeds = [feed["cache"] for feed in backend.engines["main"].feeds]
    assert not feeds[0].any()
    assert all(np.shares_memory(read, written) for read, written in zip(feeds[1:], caches, strict=False))
    assert len(feeds) == 4


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        (CODES[0], r"\[2, 30\] of int64"),
        (CODES[:, :1], r"\[1, 1, 30\] of int64"),
        (CODES.astype(np.float32), r"\[1, 2, 30\] of float32"),
        (CODES - 8, r"A code is -[1-8]"),
    ],
)
def test_codes_of_another_form_are_refused(folder: Path, piece: NDArray[np.int64], said: str) -> None:
    decoder = opened(plan_of(folder, main="main.rknn"))
    with pytest.raises(BadInput, match=said):
        decoder.decode(piece, Stopwatch())


def test_a_code_beyond_the_codebook_is_a_failed_run_of_the_host_half(folder: Path) -> None:
    with pytest.raises(RunFault, match=r"host\.onnx"):
        opened(plan_of(folder, main="main.rknn")).decode(CODES + 8, Stopwatch())


def test_a_plan_without_the_stage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="places no speech_decoder of qwen3"):
        opened(Plan(tmp_path / "plan.json", "qwen3", {}, ("speech_decoder (ggml)",)))


OTHER_LAYOUT = {"numel": NUMEL, "layout": [{"name": "past", "offset": 1, "shape": [CHANNELS, PAST]}]}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"cache": OTHER_LAYOUT}, r"main\.rknn \(main\) and first\.rknn \(first\) share no cache.*past lies elsewhere"),
        ({"source": {"name": "b", "kind": "random", "sha256": "b" * 64}}, r"main\.rknn.*first\.rknn.*the checkpoint"),
        ({"stage": "decoder"}, r"first\.rknn: is taken for .*speech_decoder"),
        ({"step": None}, r"first\.json: is no step of a speech decoder"),
        ({"cache": {"numel": NUMEL + 1, "layout": []}}, r"first\.json: its cache has 9 numbers, .* they are 10"),
    ],
)
def test_engines_that_do_not_belong_together_are_refused(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    written_step(tmp_path, "main", MAIN)
    written_step(tmp_path, "first", FIRST, **keys)
    with pytest.raises(Mismatch, match=said):
        opened(plan_of(tmp_path, main="main.rknn", first="first.rknn"))


def test_engines_of_two_seams_are_refused(tmp_path: Path) -> None:
    written_step(tmp_path, "main", MAIN)
    written_step(tmp_path, "first", FIRST, seam="codes")
    with pytest.raises(Mismatch, match="what they take is hidden of 3 of the one, and codes of 2 of the other"):
        opened(plan_of(tmp_path, main="main.rknn", first="first.rknn"))


def test_a_first_engine_that_is_not_the_smaller_one_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match="a stream begins with the smaller one"):
        opened(plan_of(folder, main="first.rknn", first="main.rknn"))


def test_a_host_half_of_another_export_is_refused(tmp_path: Path) -> None:
    written_step(tmp_path, "main", MAIN)
    host = tmp_path / "host.onnx"
    host.write_bytes(host.read_bytes() + b"\0")
    with pytest.raises(Mismatch, match=r"host\.onnx"):
        opened(plan_of(tmp_path, main="main.rknn"))


def test_no_engine_stays_open_where_one_cannot_be_opened(folder: Path) -> None:
    backend = FakeBackend(refusals={"first": 1})
    with pytest.raises(RunFault):
        open_qwen3(plan_of(folder, main="main.rknn", first="first.rknn"), backend)
    assert backend.events == ["open main", "refuse first", "close main"]
