"""The command `tune` on a sweep that is made up: what is proven, the choice, files and sentences."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from converters.stages import Stage
from rknn_tts.blocks import plain_text
from rknn_tts.cli import run
from rknn_tts.present_tune import tune_blocks
from rknn_tts.request import Request
from rknn_tts.tune import tuning as tuning_module
from rknn_tts.tune.tuning import Chosen, Tuning, tune
from rknn_tts.tune.utterance_lengths import SCHEMA
from tests.rknn_tts.stand_in_stage import install
from tests.rknn_tts.tune.made_up_sweep import FAULT, MadeUp
from tests.rknn_tts.tune.windowed_stage import windowed
from tests.rknn_tts.workshop import Heard

LENGTHS = {"schema": SCHEMA, "name": "two kinds", "source": "invented", "lengths": [[1.5, 1], [7, 1]]}
"""3 and 14 frames, at 2 a second."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    use(monkeypatch, windowed())
    Path("lengths.json").write_text(json.dumps(LENGTHS), encoding="utf-8")


def use(monkeypatch: pytest.MonkeyPatch, stage: Stage) -> None:
    """Make `stage` all there is."""
    install(monkeypatch, stage)
    monkeypatch.setattr(tuning_module, "STAGES", (stage,))


def tuned(monkeypatch: pytest.MonkeyPatch, sweep: MadeUp | None = None, **options: Any) -> Tuning:
    made = sweep or MadeUp()
    monkeypatch.setattr(tuning_module, "Sweep", lambda *given: made)
    given = {"utterances": "lengths.json", **options}
    return tune(Request("tune", family="twin", **given), Heard())


def statuses(tuning: Tuning) -> dict[str, str]:
    return {row.name: row.status for row in tuning.rows}


def chosen_of(tuning: Tuning) -> Chosen:
    assert tuning.chosen is not None
    return tuning.chosen


def test_window_that_another_beats_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = MadeUp()
    found = tuned(monkeypatch, sweep, windows="8")
    # Trimmed costs less than plain, at the same width; masked costs more and takes short utterances.
    assert statuses(found) == {"8p": "beaten", "8m": "passed", "8t": "passed"}
    assert found.rows[0].reason == "8t beats it"
    assert sweep.proved == ["8m", "8t"]
    assert any(note.startswith("1 of 3 windows are beaten by another one") for note in found.notes)


def test_window_is_proven_when_what_beats_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = MadeUp(failing=frozenset({"8t"}))
    found = tuned(monkeypatch, sweep, windows="8")
    assert statuses(found) == {"8p": "passed", "8m": "passed", "8t": "failed"}
    assert found.rows[2].reason == FAULT
    assert sweep.proved == ["8m", "8t", "8p"]


def test_ladder_is_chosen_among_those_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, windows="4m,8t,14m")
    chosen = chosen_of(found)
    # 3 frames: 5 ms by 4m. 14: 15 ms by 14m at once, 14 by 8t twice emit too few (6 + 6), 8t and 4m thrice cost 22.
    assert (chosen.ladder.names, chosen.windows) == (("4m", "14m"), "4m,14m")
    assert chosen.ladder.expected.ms == (5 + 15) / 2
    assert chosen.single is not None
    assert (chosen.single.names, chosen.single.expected.ms) == (("14m",), 15.0)
    assert chosen.default is None
    # 10 frames: one padded window of 14, as dear as 4m thrice (3 + 2 + 2 + 3), so the narrow ones, which begin sooner,
    # would need a fourth. 20 frames: 13 by 14m, the rest, 7, by 4m thrice; as dear as 14m twice.
    assert [(cover.seconds, cover.frames, cover.ms) for cover in chosen.covers] == [
        (1.0, 2, 5.0),
        (2.0, 4, 5.0),
        (5.0, 10, 15.0),
        (10.0, 20, 30.0),
    ]
    assert chosen.covers[2].windows == ("14m",)
    assert chosen.covers[3].windows == ("4m", "4m", "4m", "14m")
    assert chosen.covers[3].first_audio_ms == 5.0


def test_ladder_has_no_more_windows_than_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # Alone, for 3 and 14 frames: 4m once and six times, 8m once and twice, 14m once and once.
    expected = {"4m": 5 * 7 / 2, "8m": 9 * 3 / 2, "14m": 15.0}
    chosen = chosen_of(tuned(monkeypatch, windows="4m,8m,14m", rungs=1))
    assert (chosen.ladder.names, chosen.ladder.expected.ms) == (("8m",), min(expected.values()))


def test_quick_sweep_proves_the_ladder_alone_and_chooses_anew_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = MadeUp(failing=frozenset({"14m"}))
    found = tuned(monkeypatch, sweep, windows="4m,7p,14m,15m", quick=True)
    assert sweep.proved == ["4m", "14m", "15m"]
    assert chosen_of(found).ladder.names == ("4m", "15m")
    assert statuses(found) == {"4m": "passed", "7p": "cost alone", "14m": "failed", "15m": "passed"}
    assert any("leave out --quick" in note for note in found.notes)


def test_default_ladder_is_compared_when_it_was_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_module, "default_windows", lambda: {"twin.net": {"rk3588": "4m,8", "default": "4m"}})
    default = chosen_of(tuned(monkeypatch, windows="4m,8p,14m")).default
    assert default is not None
    # 14 frames by two plain windows of 8: 7 + 7.
    assert (default.names, default.expected.ms) == (("4m", "8p"), (5 + 16) / 2)
    assert chosen_of(tuned(monkeypatch, windows="4m,14m")).default is None
    other = chosen_of(tuned(monkeypatch, windows="4m,14m", target="rk3566")).default
    assert other is not None
    assert other.names == ("4m",)


def test_stage_of_one_width_is_tuned_over_pairs_of_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, windowed("window"))
    found = tuned(monkeypatch, windows="4,8,14")
    assert [row.name for row in found.rows] == ["4 full", "4 short", "8 full", "8 short", "14 full", "14 short"]
    # Engines of two roles do different work: the narrow ones are small, the wide ones cheap a second.
    assert set(statuses(found).values()) == {"passed"}
    chosen = chosen_of(found)
    # 3 and 14 frames: 4 + 6 x 4 ms, 8 + 2 x 8, 14 + 14.
    assert (chosen.windows, chosen.ladder.names) == ("8", ("8 full", "8 short"))
    assert (chosen.ladder.expected.ms, chosen.single) == (12.0, chosen.ladder)


def test_pair_is_left_out_when_one_of_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, windowed("window"))
    # Of the two that are left, 14 as well as 4 is of 14 ms an utterance, and 14 costs less a frame of long audio.
    assert chosen_of(tuned(monkeypatch, MadeUp(failing=frozenset({"8 short"})), windows="4,8,14")).windows == "14"


def test_steps_of_codes_are_swept_and_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, windowed("codes"))
    found = tuned(monkeypatch, codes="8,4", utterances=None)
    assert [row.name for row in found.rows] == ["4", "8"]
    assert (found.chosen, found.lengths) == (None, None)
    assert not any("No ladder" in note for note in found.notes)
    with pytest.raises(UserInput, match="goes along a stream of codes, however long: no --utterances"):
        tuned(monkeypatch, codes="8,4")


def test_no_ladder_is_chosen_when_nothing_serves_the_shortest(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, windows="4p,8t")
    assert found.chosen is None
    assert any(note.startswith("No ladder of those that passed serves every length exactly") for note in found.notes)


def test_sweep_is_written_and_replaced_when_a_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        assert tuned(monkeypatch, windows="8m", output="sweeps/mine.json").file == "sweeps/mine.json"
    data = json.loads(Path("sweeps/mine.json").read_text("utf-8"))
    assert (data["schema"], data["chosen"]["windows"]) == ("rknn-tts/tuning/1", "8m")
    assert data["rows"][0]["layers"]["modelled_ms"] == 9.0
    assert data["lengths"]["source"] == "invented"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"output": "sweep.txt"}, "--output sweep.txt: a file ending in .json is expected."),
        ({"output": "."}, "--output .: a file ending in .json is expected."),
        (
            {"output": "lengths.json"},
            "--output lengths.json: stands there already, and is no sweep; name another file.",
        ),
        ({"rungs": 0}, "--rungs 0: a ladder of 1 to 4 windows is expected."),
        ({"rungs": 5}, "--rungs 5: a ladder of 1 to 4 windows is expected."),
        ({"windows": "8t"}, "Nothing can be swept: the stage refuses it."),
        ({"windows": "x"}, "--windows x: different widths in frames are expected"),
        ({"utterances": "none.json"}, "none.json: cannot be read"),
        ({"target": "rk1"}, "The target 'rk1' is unknown"),
    ],
)
def test_tune_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setattr(tuning_module, "Sweep", lambda *given: MadeUp(refused=frozenset({"8t"})))
    words = [
        word for name, value in {"utterances": "lengths.json", **options}.items() for word in (f"--{name}", f"{value}")
    ]
    assert run(["tune", "twin", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"error: {sentence}")


def test_tune_fails_with_its_table_shown_when_no_window_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tuning_module, "Sweep", lambda *given: MadeUp(failing=frozenset({"8m", "14m"})))
    assert run(["tune", "twin", "--windows", "8m,14m", "--utterances", "lengths.json"]) == 1
    out, err = capsys.readouterr()
    assert out.count("failed") == 2
    assert "No ladder of those that passed" not in out
    assert err == "error: Of the 2 windows of this sweep none passed: the table says why.\n"


def test_tune_makes_no_graph_when_the_toolkit_is_unknown() -> None:
    heard = Heard()
    with pytest.raises(UserInput, match=r"no lock for rknn-toolkit2 1\.0"):
        tune(Request("tune", family="twin", utterances="lengths.json", windows="8m", toolkit="1.0"), heard)
    assert heard.steps == []


@pytest.mark.parametrize("what", ["deep", "pipe", "device"])
def test_tune_replaces_nothing_when_what_stands_there_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    place = tmp_path / "mine.json"
    if what == "deep":
        place.write_text("[" * 100_000)
    elif what == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    with pytest.raises(UserInput, match="stands there already, and is no sweep"):
        tuned(monkeypatch, windows="8m", output=str(place))
    assert place.exists()


def test_lengths_are_refused_when_nothing_states_how_long_a_frame_sounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserInput, match="--sample-rate says it"):
        tuned(monkeypatch, MadeUp(rate=None), windows="8m")


def test_sweep_is_shown_with_its_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, MadeUp(failing=frozenset({"20t"})), windows="4m,14m,14p,20t")
    lines = [" ".join(line.split()) for line in plain_text(tune_blocks(found)).splitlines()]
    assert lines[:4] == [
        "stage: twin net",
        "target: rk3588, rknn-toolkit2 2.3.2",
        "source: mini.json, sha256 abababababababab",
        "utterances: two kinds; 4.25 s on average",
    ]
    # 14m emits 12 frames, 6 s, in 15 ms: 2.5 a second; 560 KB + 1 MB; 1000 bytes.
    assert "passed 14m 12 of 14 2.5 15 1.56 0.001 0 44.0 101.0 -" in lines
    (failed,) = [line for line in lines if line.startswith("failed 20t 18 of 20 ")]
    assert failed.endswith(FAULT)
    assert lines.index(failed) > lines.index("passed 14m 12 of 14 2.5 15 1.56 0.001 0 44.0 101.0 -")
    assert "chosen 4m,14m 10 1.00x 10 2.72" not in lines
    (ladder,) = [line for line in lines if line.startswith("chosen ")]
    # 3 frames cost 5 ms, 14 by the plain window 14; 1.16 + 1.56 MB.
    assert ladder == "chosen 4m,14p 9.5 1.00x 9.5 2.72"
    assert "best single 14m 15 1.58x 15 1.56" in lines
    assert "build: ./rknn-tts engine twin --stage net --target rk3588 --windows 4m,14" in lines
    assert "runs: 0.500 of 4m, 0.500 of 14p" in lines
    assert "10 s 20 2 x 14p 28 0.0028 14" in lines
    assert "note: all times are modelled, not measured on a board" in lines
    assert "note: a note" in lines


def test_command_that_builds_the_choice_asks_for_its_context_when_contexts_are_swept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whichever of the two it is, a --windows without it builds the stage's own context.
    found = tuned(monkeypatch, windows="14m", contexts="2,4")
    assert found.chosen is not None
    (name,) = found.chosen.ladder.names
    context = name.partition(" c")[2]
    assert context in ("2", "4")
    text = " ".join(plain_text(tune_blocks(found)).split())
    assert f"./rknn-tts engine twin --stage net --target rk3588 --windows 14m --context {context}" in text


def test_json_of_the_command_holds_the_sweep(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tuning_module, "Sweep", lambda *given: MadeUp())
    assert run(["tune", "twin", "--utterances", "lengths.json", "--windows", "8m", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["tuning"]["chosen"]["ladder"]["names"] == ["8m"]
    assert data["tuning"]["family"] == "twin"
