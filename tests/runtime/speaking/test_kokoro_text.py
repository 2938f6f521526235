"""Ids, phonemes and texts as a Kokoro's tokens; misaki is a stand-in, in a program of its own as the real one is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.speaking import kokoro_phonemiser
from rknn_tts_runtime.speaking.kokoro_card import KokoroCard
from rknn_tts_runtime.speaking.kokoro_phonemiser import misaki_phonemes
from rknn_tts_runtime.speaking.kokoro_text import Said, said_by
from rknn_tts_runtime.speaking.reading_program import PYTHON_VARIABLE
from rknn_tts_runtime.speaking.speaker import Asked

from converters.kokoro.voices import Voices, tokens_of

VOCABULARY = {"a": 1, "b": 2, " ": 3, "ç": 4, "o": 5, "\N{COMBINING TILDE}": 6}
HOST = Path("kokoro-host.onnx")


def card(vocabulary: Mapping[str, int] = VOCABULARY) -> KokoroCard:
    return KokoroCard(24000, 300, 20, 5, 256, 9, 10, 12, 100, vocabulary)


def said(asked: Asked, known: KokoroCard | None = None, voice: str = "af_heart", lines: tuple[str, ...] = ()) -> Said:
    def phonemise(language: str, text: str) -> list[str]:
        assert (language, text) == (voice[0], asked.text)
        return list(lines)

    return said_by(known or card(), HOST, voice, asked, phonemise)


@pytest.mark.parametrize(
    ("phonemes", "tokens"),
    [
        ("a", (0, 1, 0)),
        ("ab a", (0, 1, 2, 3, 1, 0)),
        ("aç", (0, 1, 4, 0)),
        ("\N{LATIN SMALL LETTER O WITH TILDE}b", (0, 5, 6, 2, 0)),
    ],
)
def test_phonemes_are_their_tokens_between_boundaries(phonemes: str, tokens: tuple[int, ...]) -> None:
    assert said(Asked(phonemes=phonemes)) == Said((tokens,), ())


def test_phonemes_are_the_tokens_of_the_toolchain() -> None:
    theirs = tokens_of("ab aç", Voices({}, VOCABULARY))
    assert [list(tokens) for tokens in said(Asked(phonemes="ab aç")).utterances] == theirs.tolist()


def test_ids_are_taken_as_they_are() -> None:
    assert said(Asked(ids=(0, 9, 1, 0))) == Said(((0, 9, 1, 0),), ())
    assert said(Asked(ids=(0, 9, 1, 0)), card({})) == Said(((0, 9, 1, 0),), ())


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Asked(), "--text: .* has a token for nothing in it"),
        (Asked(ids=()), "--ids: there is nothing to speak in it"),
        (Asked(ids=(0, 0)), "nothing to say between the boundaries"),
        (Asked(ids=(0,)), "begins and ends with 0"),
        (Asked(ids=(1, 2, 0)), "begins and ends with 0; put one before and one behind"),
        (Asked(ids=(0, 1, 2)), "begins and ends with 0"),
        (Asked(ids=(0, 10, 0)), r"--ids: 10 is no id of the voice in kokoro-host\.onnx, whose ids go from 0 to 9"),
        (Asked(ids=(0, -1, 0)), "--ids: -1 is no id"),
        (Asked(ids=(0, *[1] * 13, 0)), "13 phonemes are more than this Kokoro takes at once, 12; part what is said"),
        (Asked(phonemes="a" * 13), "13 phonemes are more"),
        (Asked(phonemes=""), "nothing to say"),
        (Asked(phonemes="aXbYX"), r"does not have 'X' \(U\+0058\), 'Y' \(U\+0059\); leave it out"),
        (Asked(phonemes="ABCDEFGHIJKL"), r"'J' \(U\+004A\) and 2 more"),
    ],
)
def test_what_cannot_be_said_is_refused(asked: Asked, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        said_by(card(), HOST, "af_heart", asked, lambda language, text: [])


@pytest.mark.parametrize("asked", [Asked(phonemes="a"), Asked(text="a")])
def test_a_checkpoint_without_a_vocabulary_speaks_ids_only(asked: Asked) -> None:
    with pytest.raises(BadInput, match=r"was exported without a vocabulary .* give --ids"):
        said(asked, card({}))


def test_each_line_of_a_text_is_an_utterance_and_what_is_not_known_is_told() -> None:
    found = said(Asked(text="words"), lines=("ab", "XX", "bXa"))
    assert found.utterances == ((0, 1, 2, 0), (0, 2, 1, 0))
    assert found.notes == ("The Kokoro in kokoro-host.onnx does not have 'X' (U+0058): left out.",)


def test_a_text_without_a_phoneme_that_is_known_is_refused() -> None:
    with pytest.raises(BadInput, match=r"has a token for nothing in it \('X' .*\); is it in the language of af_heart"):
        said(Asked(text="words"), lines=("X",))


@pytest.mark.parametrize("voice", ["", "xf_heart", "Alice"])
def test_a_text_needs_a_voice_whose_name_tells_its_language(voice: str) -> None:
    with pytest.raises(BadInput, match=r"first letter \(a, b, j, z, e, f, h, i, p\), and .* has none of them"):
        said_by(card(), HOST, voice, Asked(text="words"), lambda language, text: ["a"])


STAND_IN = {
    "en": """
print("fetching a model")
class G2P:
    def __init__(self, trf, british, fallback, unk):
        self.said = f"trf={trf} british={british} fallback={fallback} unk={unk!r}"
    def __call__(self, text):
        return f" {self.said}  ɾ[{text}]", ["tokens"]
""",
    "ja": """
class JAG2P:
    def __call__(self, text):
        if text == "broken":
            raise ValueError("no such word")
        if text == "dead":
            import os
            os._exit(9)
        return f"ja[{text}]", None
""",
    "zh": """
class ZHG2P:
    def __call__(self, text):
        return f"zh[{text}]"
""",
    "espeak": """
class EspeakG2P:
    def __init__(self, language):
        self.language = language
    def __call__(self, text):
        return f"{self.language}[{text}]", None
class EspeakFallback:
    def __init__(self, british):
        self.british = british
    def __repr__(self):
        return "gb" if self.british else "us"
""",
}


@pytest.fixture
def misaki(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has a stand-in for misaki, where Python finds it."""
    package = tmp_path / "misaki"
    package.mkdir()
    for name, text in {"__init__": "", **STAND_IN}.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return package


@pytest.mark.parametrize(
    ("language", "phonemes"),
    [
        ("a", "trf=False british=False fallback=us unk='' T[x]"),
        ("b", "trf=False british=True fallback=gb unk='' T[x]"),
        ("j", "ja[x]"),
        ("z", "zh[x]"),
        ("e", "es[x]"),
        ("f", "fr-fr[x]"),
        ("h", "hi[x]"),
        ("i", "it[x]"),
        ("p", "pt-br[x]"),
    ],
)
def test_misaki_is_asked_as_kokoro_asks_it(misaki: Path, language: str, phonemes: str) -> None:
    assert misaki_phonemes(language, "x") == [phonemes]


def test_misaki_reads_line_by_line(misaki: Path) -> None:
    assert misaki_phonemes("j", "one 二\n\n  \nthree") == ["ja[one 二]", "ja[three]"]


def test_english_is_read_without_espeak_too(misaki: Path) -> None:
    (misaki / "espeak.py").write_text("raise ImportError('no phonemizer')", encoding="utf-8")
    assert misaki_phonemes("a", "x") == ["trf=False british=False fallback=None unk='' T[x]"]


def test_misaki_that_is_not_there_is_told_how_to_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(BadInput, match=r"has none \(No module named 'misaki'\).*pip install 'misaki\[ja\]'"):
        misaki_phonemes("j", "x")


def test_misaki_without_what_a_language_needs_is_told_how_to_get(misaki: Path) -> None:
    (misaki / "zh.py").write_text("import jieba_that_is_not_there", encoding="utf-8")
    with pytest.raises(BadInput, match=r"No module named 'jieba_that_is_not_there'.*pip install 'misaki\[zh\]'"):
        misaki_phonemes("z", "x")


def test_misaki_that_cannot_read_it_or_breaks_is_told(misaki: Path) -> None:
    with pytest.raises(BadInput, match=r"misaki cannot read it \(ValueError: no such word\)"):
        misaki_phonemes("j", "broken")
    with pytest.raises(RunFault, match="Kokoro's phonemiser misaki ended with status 9"):
        misaki_phonemes("j", "dead")


def test_another_python_may_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, str(tmp_path / "python"))
    with pytest.raises(BadInput, match=r"python cannot be run \(No such file or directory\).*give --ids or --phonemes"):
        misaki_phonemes("a", "x")
    python = tmp_path / "python"
    for answer, fault, says in (
        ('{"phonemes": ["ab"]}', None, ""),
        ("words", RunFault, "misaki gave no phonemes"),
        ('{"phonemes": 1}', RunFault, "misaki gave no phonemes"),
        ("[]", RunFault, "misaki gave no phonemes"),
    ):
        python.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n", encoding="utf-8")
        python.chmod(0o755)
        if fault is None:
            assert misaki_phonemes("a", "x") == ["ab"]
        else:
            with pytest.raises(fault, match=says):
                misaki_phonemes("a", "x")


def test_misaki_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv(PYTHON_VARIABLE, os.fspath(python))
    monkeypatch.setattr(kokoro_phonemiser, "SECONDS", 0.2)
    with pytest.raises(RunFault, match=r"misaki had no answer after 0\.2 s"):
        misaki_phonemes("a", "x")
