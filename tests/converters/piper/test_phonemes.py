from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.speaking.phonemiser import PROGRAM

from contracts.errors import Refusal, RknnTtsError, ToolFailure, UserInput
from converters.piper.phonemes import framed_ids, spoken_ids
from converters.piper.voice import Voice, open_voice
from converters.stages import Sentence
from tests.converters.voices import opened
from tests.runtime.speaking.stand_in_phonemiser import answer, giving
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.streaming import write_streaming_pair
from tests.vits_writer.voice import voice_json, write_voice

PIPER_MAP = {
    "_": [0],
    "^": [1],
    "$": [2],
    " ": [3],
    "h": [20],
    "i": [21],
    "ɪ": [9],
    "aɪ": [30],
    "e": [6],
    "\u0301": [7],
}


def nothing() -> None:
    """The phonemiser is there."""


def not_asked() -> None:
    pytest.fail("the phonemiser was asked for")


def voice_of(folder: Path, **changes: Any) -> Voice:
    """A voice whose JSON is what Piper writes, with `changes`; None takes a key away."""
    config = {**voice_json(), "phoneme_id_map": PIPER_MAP, **changes}
    kept = {key: value for key, value in config.items() if value is not None}
    return open_voice(write_voice(folder / "voice.onnx", config=kept))


@pytest.mark.parametrize(
    ("table", "symbols", "wanted"),
    [
        ({"_": (0,), "^": (1,), "$": (2,)}, [(20,), (9, 8)], [1, 0, 20, 0, 9, 8, 0, 2]),
        ({"_": (0,), "^": (1,), "$": (2,)}, [], [1, 0, 2]),
        ({}, [(4,)], [0, 4, 0]),
    ],
)
def test_framed_ids_begin_end_and_part_the_symbols(table: Any, symbols: Any, wanted: list[int]) -> None:
    assert framed_ids(table, symbols) == wanted


def test_ids_are_spoken_as_they_are(tmp_path: Path) -> None:
    voice = opened(tmp_path)
    last = Recipe().symbols - 1
    assert spoken_ids(voice, Sentence(None, (1, 0, last, 2)), not_asked) == Sentence(None, (1, 0, last, 2))


def test_ids_that_the_voice_does_not_have_are_named_with_the_range(tmp_path: Path) -> None:
    symbols = Recipe().symbols
    with pytest.raises(UserInput, match=rf"^--ids: {symbols} is no id of voice\.onnx, .* from 0 to {symbols - 1}\.$"):
        spoken_ids(opened(tmp_path), Sentence(None, (1, symbols, 2)), not_asked)


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        (Sentence(None, (0,) * 2049), r"^--ids: a sample speaks up to 2048 ids, and these are 2049; shorten it\.$"),
        # i and a pad for each letter, with begin, pad and end around them.
        (Sentence("i" * 1024), r"^--text: a sample speaks up to 2048 ids, and these are 2051; shorten it\.$"),
    ],
)
def test_more_than_it_is_sensible_to_hear_is_refused(tmp_path: Path, sentence: Sentence, told: str) -> None:
    with pytest.raises(UserInput, match=told):
        spoken_ids(voice_of(tmp_path, phoneme_type="text"), sentence, not_asked)


def test_text_is_asked_of_the_phonemiser_in_the_voices_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answer(monkeypatch, tmp_path, giving(["h", "aɪ"]))
    voice = voice_of(tmp_path, espeak={"voice": "de"}, vowel_clusters=[["a", "ɪ"]])
    added: list[bool] = []
    made = spoken_ids(voice, Sentence("Hi ß\0!"), lambda: added.append(asked.exists()))
    assert made == Sentence("Hi ß\0!", (1, 0, 20, 0, 30, 0, 2))
    assert added == [False]  # before it is started
    question = {"voice": "de", "clusters": [["a", "ɪ"]], "text": "Hi ß !"}
    assert json.loads(asked.read_text("utf-8")) == question


def test_the_locked_phonemiser_is_the_one_that_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNN_TTS_PHONEMISER_PYTHON", str(tmp_path / "another"))
    asked = answer(monkeypatch, tmp_path, f"assert sys.flags.isolated\n{giving(['i'])}")
    assert spoken_ids(voice_of(tmp_path), Sentence("I"), nothing).ids == (1, 0, 21, 0, 2)
    assert asked.exists()


def test_sentences_of_a_text_follow_each_other_each_with_its_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, tmp_path, giving(["h", "i"], ["i"]))
    made = spoken_ids(voice_of(tmp_path), Sentence("Hi. I."), nothing)
    assert made.ids == (1, 0, 20, 0, 21, 0, 2, 1, 0, 21, 0, 2)


def test_phonemes_without_an_id_are_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, tmp_path, giving(["h", "ç", "i", "ç", "x"]))
    made = spoken_ids(voice_of(tmp_path), Sentence("Hi"), nothing)
    assert made.ids == (1, 0, 20, 0, 21, 0, 2)
    assert made.notes == ("The voice in voice.onnx.json has no id for 'ç', 'x': left out of what is said.",)


def test_characters_are_the_phonemes_of_a_voice_that_says_so(tmp_path: Path) -> None:
    # Piper decomposes: é is e and an acute accent.
    made = spoken_ids(voice_of(tmp_path, phoneme_type="text", espeak=None), Sentence("hé i"), not_asked)
    assert made.ids == (1, 0, 20, 0, 6, 0, 7, 0, 3, 0, 21, 0, 2)


@pytest.mark.parametrize(
    ("changes", "text", "kind", "told"),
    [
        ({"phoneme_id_map": None}, "hi", UserInput, r"voice\.onnx\.json is not there or has no phoneme_id_map"),
        ({"phoneme_type": "pinyin"}, "hi", Refusal, r"are of the type 'pinyin', .* give --ids\.$"),
        ({"phoneme_type": "japanese"}, "hi", Refusal, r"are of the type 'japanese'"),
        ({"espeak": None}, "hi", UserInput, r"does not say in which language"),
        ({"phoneme_type": "text"}, "你好", UserInput, r"an id for nothing in it \('你', '好'\); is it in the voice's"),
    ],
)
def test_text_that_cannot_be_read_is_refused_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], text: str, kind: type[RknnTtsError], told: str
) -> None:
    with pytest.raises(kind, match=told) as caught:
        spoken_ids(voice_of(tmp_path, **changes), Sentence(text), not_asked)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "kind", "told"),
    [
        ("print(json.dumps({'phonemes': []}))", UserInput, r"an id for nothing in it; is it in"),
        ("print(json.dumps({'fault': 'Failed to set voice: xx'}))", UserInput, r"'en-us' \(Failed to set voice: xx\)"),
        ("os.kill(os.getpid(), 11)", ToolFailure, r"ended with signal 11 \(silent\); give --ids\.$"),
        ("raise SystemExit('no module\\nnamed piper')", ToolFailure, r"ended with status 1 \(named piper\)"),
        ("sys.exit(3)", ToolFailure, r"ended with status 3 \(silent\)"),  # the locked one is not there: no user's fault
        ("print('hello')", ToolFailure, r"gave no phonemes \(b'hello"),
        ("print('[]')", ToolFailure, r"gave no phonemes"),
        ("time.sleep(60)", ToolFailure, r"had no answer after 0\.5 s"),
    ],
)
def test_phonemiser_that_does_not_do_its_work_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, kind: type[RknnTtsError], told: str
) -> None:
    answer(monkeypatch, tmp_path, lines, 0.5 if "sleep" in lines else 60.0)
    with pytest.raises(kind, match=told) as caught:
        spoken_ids(voice_of(tmp_path), Sentence("hi"), nothing)
    assert "\n" not in str(caught.value)


def test_pipers_phonemiser_reads_the_gates_sentence(tmp_path: Path) -> None:
    # As espeak-ng's en-us phonemes are written in the gates' sentence, one code point each.
    wanted = list("ðə bˈɜːtʃ kənˈuː slˈɪd")
    symbols = {symbol: [number] for number, symbol in enumerate(dict.fromkeys("_^$" + "".join(wanted)))}
    voice = voice_of(tmp_path, phoneme_id_map=symbols)
    ids = [symbols["^"], symbols["_"]]
    for phoneme in wanted:
        ids += [symbols[phoneme], symbols["_"]]
    made = spoken_ids(voice, Sentence("The birch canoe slid"), nothing)
    assert made == Sentence("The birch canoe slid", tuple(i for symbol in [*ids, symbols["$"]] for i in symbol))


def test_pipers_phonemiser_names_a_language_that_it_does_not_know(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"cannot read it in the language 'xx-yy' \(Failed to set voice: xx-yy\)"):
        spoken_ids(voice_of(tmp_path, espeak={"voice": "xx-yy"}), Sentence("hi"), nothing)


def test_what_is_under_the_gpl_is_not_loaded_where_the_project_runs(tmp_path: Path) -> None:
    spoken_ids(voice_of(tmp_path), Sentence("hi"), nothing)
    assert "piper" not in sys.modules


def test_only_the_program_imports_it_and_nothing_of_the_project() -> None:
    root = PROGRAM.parents[3]
    importing = {
        path.relative_to(root).as_posix()
        for room in ("contracts", "converters", "engine", "gates", "models", "rknn_tts", "runtime", "surgery")
        for path in (root / room).rglob("*.py")
        if "piper" in imported(path)
    }
    assert importing == {PROGRAM.relative_to(root).as_posix()}
    assert imported(PROGRAM) == {"__future__", "piper", "json", "pathlib", "sys"}


def imported(path: Path) -> set[str]:
    """The top-level modules that the file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"phoneme_id_map": {}}, r"--text: config\.json is not there or has no phoneme_id_map"),
        ({"espeak": {}}, r"--text: the voice in config\.json does not say in which language"),
    ],
)
def test_text_of_a_streaming_voice_is_refused_by_the_json_of_its_folder(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    write_streaming_pair(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**voice_json(), **changes}), encoding="utf-8")
    with pytest.raises(UserInput, match=says):
        spoken_ids(open_voice(tmp_path / "decoder.onnx"), Sentence("hi"), not_asked)
