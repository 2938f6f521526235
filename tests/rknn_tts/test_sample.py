"""A sentence to hear, from the command to the WAV files, of a small voice and a stand-in for the toolkit."""

from __future__ import annotations

import wave
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rknn_tts_runtime.manifest import read_manifest

from contracts.errors import UserInput
from converters.stages import Array, Sentence
from rknn_tts.outcome import Outcome
from rknn_tts.request import Request
from rknn_tts.sample import ENGINE, REFERENCE, WINDOWS, check_sample_folder, seams_of, sentence_of
from tests.converters.voices import whole_voice
from tests.onnx_runs import snr_db
from tests.rknn_tts.speaking_workshop import IDS, TOO_LOUD, TOO_LOUD_DB, speaking_workshop
from tests.rknn_tts.workshop import Workshop
from tests.runtime.speaking.stand_in_phonemiser import answer, giving
from tests.vits_writer.recipe import ALPHABET, Recipe

PCM_DB = 70.0
"""Least of 16 bits for the samples of the small voice, whose peak is at 0.27."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with speaking_workshop(tmp_path_factory) as made:
        yield made


def build(workshop: Workshop, folder: str, **options: Any) -> Outcome:
    return workshop.build(checkpoint=str(workshop.folder.parent / "mini.onnx"), sample=folder, **options)


@pytest.fixture(scope="module")
def heard(workshop: Workshop) -> Outcome:
    return build(workshop, "heard", ids=",".join(map(str, IDS)))


def read_wav(path: Path) -> NDArray[np.float64]:
    with wave.open(str(path), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, Recipe().sample_rate)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32767


def said(ids: list[int]) -> NDArray[np.float32]:
    """What the voice says, as it was written."""
    return np.asarray(whole_voice(Recipe(), ids, (0.0, 1.0, 0.0))["output"].reshape(-1), np.float32)


def test_wav_files_hold_what_the_voice_says(workshop: Workshop, heard: Outcome) -> None:
    files = [f"heard/{name}" for name in (REFERENCE, WINDOWS, ENGINE)]
    assert heard.files[-3:] == tuple(files)
    reference, windows, engine = (read_wav(workshop.folder / name) for name in files)
    wanted = said(IDS)
    assert snr_db(wanted, reference) > PCM_DB
    assert snr_db(wanted, windows) > PCM_DB
    assert snr_db(wanted * TOO_LOUD, engine) > PCM_DB


def test_figures_compare_the_files(heard: Outcome) -> None:
    figures: dict[str, Any] = {figure.name: figure.measured for figure in heard.measurements}
    figures = {name: figure for name, figure in figures.items() if name.startswith("sample.")}
    assert figures.keys() == {"sample.engine", "sample.windows", "sample.whole"}
    assert figures["sample.windows"] > 95.0  # the gates' least for windows of 32 frames of context
    assert figures["sample.engine"] == pytest.approx(TOO_LOUD_DB, abs=0.1)
    assert figures["sample.whole"] == pytest.approx(TOO_LOUD_DB, abs=0.1)


def test_note_says_what_is_said(heard: Outcome) -> None:
    frames = said(IDS).size // Recipe().hop
    (note,) = [note for note in heard.notes if note.startswith("The sample says")]
    assert f"the sentence that was asked for, {len(IDS)} ids, {frames} frames. engine.wav" in note
    assert "no board's output" in note


def test_same_sentence_is_found_again_and_written_anew(workshop: Workshop, heard: Outcome) -> None:
    again = build(workshop, "elsewhere", ids=" ".join(map(str, IDS)))
    assert {"build", "sentence", "sample"} <= set(again.reused)
    for name in (REFERENCE, WINDOWS, ENGINE):
        assert workshop.digest(f"elsewhere/{name}") == workshop.digest(f"heard/{name}")
    assert again.notes == heard.notes


def test_text_goes_through_the_phonemiser_and_tells_what_it_left_out(
    workshop: Workshop, heard: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, tmp_path, giving(["h", "ʉ", "a"]))
    done = build(workshop, "texts", text="Ha")
    h, a = ALPHABET.index("h"), ALPHABET.index("a")
    assert snr_db(said([1, 0, h, 0, a, 0, 2]), read_wav(workshop.folder / "texts" / REFERENCE)) > PCM_DB
    assert "The voice in mini.onnx.json has no id for 'ʉ': left out of what is said." in done.notes
    assert "build" in done.reused


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ids": "1,0,99999"}, r"--ids: 99999 is no id of mini\.onnx"),
        ({"text": "hi", "ids": "1"}, r"give one of them"),
        ({"text": " "}, r"--text: there is nothing to speak"),
        ({"text": "caf\udce9"}, r"--text: is not valid UTF-8"),
        ({"ids": "1,x"}, r"--ids 1,x: whole numbers are expected"),
        ({"ids": "9" * 5000}, r"--ids 9+: whole numbers are expected"),  # past what Python makes a number of
    ],
)
def test_sentence_that_cannot_be_spoken_is_refused_before_anything_is_written(
    workshop: Workshop, options: dict[str, Any], told: str
) -> None:
    place = workshop.fresh("refused")
    with pytest.raises(UserInput, match=told):
        build(place, "heard", **options)
    assert not any(name.endswith((".rknn", ".wav")) for name in place.files())
    assert not (place.folder / "heard").exists()


@pytest.mark.parametrize("given", [{"text": "hi"}, {"ids": "1,0,2"}])
def test_sentence_without_a_folder_for_it_asks_for_one(given: dict[str, Any]) -> None:
    with pytest.raises(UserInput, match=r"name a folder for it with --sample DIR\.$"):
        sentence_of(Request(command="engine", **given))


def test_ids_are_read_with_commas_or_spaces() -> None:
    assert sentence_of(Request(command="engine", sample="d", ids="1, 0 20,0,2")) == Sentence(None, (1, 0, 20, 0, 2))


def test_sample_replaces_samples_alone(tmp_path: Path) -> None:
    (tmp_path / REFERENCE).write_bytes(b"RIFF, as a WAV file begins")
    check_sample_folder(tmp_path)
    (tmp_path / ENGINE).write_bytes(b"a thesis")
    with pytest.raises(UserInput, match=r"engine\.wav: is no WAV file, and would be replaced"):
        check_sample_folder(tmp_path)
    with pytest.raises(UserInput, match=r"is a file; name a folder\.$"):
        check_sample_folder(tmp_path / ENGINE)


def test_seams_are_where_one_window_hands_over_to_the_next() -> None:
    def joined(outputs: Sequence[Mapping[str, Array]]) -> NDArray[np.float32]:
        first, second, third = (np.asarray(output["audio"], np.float32) for output in outputs)
        return np.concatenate([first[:6], second[2:7], third[3:]])

    outputs = [{"audio": np.zeros(10, np.float32)} for _ in range(3)]
    assert seams_of(joined, outputs) == (6, 11)


def test_seam_is_the_middle_when_windows_fade_into_each_other() -> None:
    def faded(outputs: Sequence[Mapping[str, Array]]) -> NDArray[np.float32]:
        first, second = (np.asarray(output["audio"], np.float32) for output in outputs)
        return np.concatenate([first[:6], (first[6:] + second[:4]) / 2, second[4:]])

    outputs = [{"audio": np.arange(10, dtype=np.float32)} for _ in range(2)]
    assert seams_of(faded, outputs) == (8,)


def test_one_window_has_no_seam() -> None:
    def alone(outputs: Sequence[Mapping[str, Array]]) -> NDArray[np.float32]:
        return np.asarray(outputs[0]["audio"], np.float32)

    assert seams_of(alone, [{"audio": np.zeros(4, np.float32)}]) == ()


def test_ladder_is_heard_as_a_board_picks_its_windows(workshop: Workshop) -> None:
    outcome = build(workshop, "ladder", ids=",".join(map(str, IDS)), windows="128m,200t")
    frames = len(said(IDS)) // Recipe().hop
    assert frames > 200
    (note,) = [note for note in outcome.notes if note.startswith("The sample says")]
    assert note.startswith(f"The sample says the sentence that was asked for, {len(IDS)} ids, {frames} frames.")
    assert {f"ladder/{name}" for name in (REFERENCE, WINDOWS, ENGINE)} <= set(outcome.files)
    figures = {figure.name: figure.measured for figure in outcome.measurements}
    assert isinstance(figures["sample.windows"], float)
    assert figures["sample.windows"] > 95.0
    assert figures["sample.engine"] == pytest.approx(TOO_LOUD_DB, abs=0.1)
    heard = read_wav(workshop.folder / "ladder" / ENGINE)
    assert heard.size == frames * Recipe().hop
    engines = workshop.folder / "engines/rk3588/mini"
    assert {path.name for path in engines.glob("*.rknn")} >= {
        "piper-decoder-w128-masked.rknn",
        "piper-decoder-w200-trimmed.rknn",
    }
    members = workshop.json("engines/rk3588/mini/piper-decoder.set.json")
    assert list(members["roles"]) == ["w128", "w200"]
    masked, trimmed = (
        read_manifest(engines / f"piper-decoder-{name}.json") for name in ("w128-masked", "w200-trimmed")
    )
    assert (masked.masked, masked.trim) == (True, None)
    assert trimmed.trim is not None  # as many frames as its output has, or it were not read
    assert (trimmed.trim.input, 136 <= trimmed.trim.frames < 200, trimmed.masked) == ("place", True, False)


def test_trimmed_engine_alone_says_that_a_sentence_is_too_short(workshop: Workshop) -> None:
    with pytest.raises(
        UserInput, match=r"--sample: the sentence takes \d+ frames, and the engines take no fewer than 200"
    ):
        build(workshop, "short", ids="1,0,12,0,2", windows="200t")
