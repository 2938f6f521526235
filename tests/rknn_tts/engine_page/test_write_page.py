"""Whole pages, of a small voice that a stand-in for the toolkit builds, and of engines a few bytes large."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.contract import PassRecord, Source, TensorSpec
from contracts.errors import Refusal, UserInput
from contracts.manifest import CpuLayer, Layers, LogSummary, RegtaskCount
from contracts.verdicts import at_least, unproven
from converters.stages import Sentence
from rknn_tts.cli import run
from rknn_tts.engine_page.hearing import heard
from rknn_tts.engine_page.remade import Member, remade
from rknn_tts.engine_page.simulated import simulated
from rknn_tts.engine_page.write_page import WrittenPage, write_page
from rknn_tts.outcome import Outcome
from rknn_tts.request import Request
from tests.converters.voices import whole_voice
from tests.onnx_runs import snr_db
from tests.rknn_tts.built_engines import write_engine, write_set
from tests.rknn_tts.engine_page.reading import Reading, read_page, samples_of
from tests.rknn_tts.engines import engine_bytes
from tests.rknn_tts.speaking_workshop import IDS, speaking_workshop
from tests.rknn_tts.workshop import Heard, Workshop, fresh_steps
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import write_voice

ENGINE = "engines/rk3588/mini/piper-decoder-w109"
HOSTILE = "<script>alert('x')</script><img src=http://example.org/x onerror=alert(1)>"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with speaking_workshop(tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="module")
def voice(workshop: Workshop) -> str:
    return str(workshop.folder.parent / "mini.onnx")


@pytest.fixture(scope="module")
def built(workshop: Workshop, voice: str) -> Outcome:
    return workshop.build(checkpoint=voice, window=109)


def write(workshop: Workshop, *words: str, **options: Any) -> tuple[WrittenPage, Reading]:
    """The page of the engines `words`, written in the workshop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(workshop.folder)
        patch.setenv("RKNN_TTS_CACHE", str(workshop.cache))
        done = write_page(Request("report", engines=list(words), **options), Heard())
        return done, read_page(Path(done.file).read_bytes())


@pytest.fixture(scope="module")
def spoken(workshop: Workshop, voice: str, built: Outcome) -> tuple[WrittenPage, Reading]:
    return write(workshop, f"{ENGINE}.rknn", checkpoint=voice, ids=",".join(map(str, IDS)))


def test_page_stands_beside_its_engine(spoken: tuple[WrittenPage, Reading]) -> None:
    assert spoken[0].file == f"{ENGINE}.html"
    assert spoken[0].engines == ("piper-decoder-w109",)
    # The stand-in's engine is none that could be read; nothing else is missing.
    assert [note for note in spoken[0].notes if "Its description cannot be read" not in note] == []


def test_page_has_the_figures_of_the_manifest(workshop: Workshop, spoken: tuple[WrittenPage, Reading]) -> None:
    manifest, page = workshop.json(f"{ENGINE}.json"), spoken[1]
    shown = {row[1]: (row[0], row[5]) for row in page.tables["Verdicts"][1:]}
    assert shown == {v["gate"]: (v["status"], v["detail"]) for v in manifest["verdicts"]}
    hits = {row[0]: int(row[1]) for row in page.tables["Passes that rewrote something"][1:]}
    assert hits == {p["name"]: p["hits"] for p in manifest["passes"] if p["hits"]}
    for digest in (manifest["engine"]["sha256"], manifest["onnx"]["sha256"], manifest["host"]["sha256"]):
        assert any(digest in line for line in page.lines)
    assert page.facts["layers"].startswith(f"{manifest['layers']['count']}, ")
    tensors = [row[1:] for row in page.tables["Tensors"][1:]]
    told = [[t["name"], str(t["shape"]), t["dtype"]] for t in (*manifest["inputs"], *manifest["outputs"])]
    assert tensors == told


def test_page_has_the_cost_of_the_layer_table(workshop: Workshop, spoken: tuple[WrittenPage, Reading]) -> None:
    name = workshop.json(f"{ENGINE}.json")["layers"]["file"]
    layers = workshop.json(name)
    page = spoken[1]
    assert sum(int(row[1]) for row in page.tables["Cost by operator"][1:]) == len(layers)
    assert sum(int(row[1]) for row in page.tables["Where layers run"][1:]) == len(layers)
    # docs/cost.md: a cycle is a millionth of a ms, 5 MB of traffic one ms; on the CPU 5 ms a MB besides.
    ends = {"InputOperator", "OutputOperator"}
    ms = [
        layer["cycles"] / 1e6
        + layer["rw_kb"] / 5000
        + (layer["rw_kb"] / 200 if layer["target"] == "CPU" and layer["op"] not in ends else 0)
        for layer in layers
    ]
    dearest = next(rows for caption, rows in page.tables.items() if caption.endswith("dearest layers"))
    assert len(dearest) - 1 == min(20, len(layers))
    assert [float(row[3]) for row in dearest[1:]] == pytest.approx(sorted(ms, reverse=True)[:20], rel=2e-3, abs=2e-3)


def test_page_counts_the_lines_of_the_log(workshop: Workshop, spoken: tuple[WrittenPage, Reading]) -> None:
    name = workshop.json(f"{ENGINE}.json")["layers"]["file"].replace(".layers.json", ".log")
    rows = {row[0]: int(row[1]) for row in spoken[1].tables[f"Lines of {name} by class"][1:]}
    lines = (workshop.folder / name).read_text().splitlines()
    assert (rows["started"], rows["done"], rows["regtask"], rows["unknown error"]) == (1, 1, 0, 0)
    assert sum(rows.values()) == sum(line.strip() != "" for line in lines)


def test_arrays_of_the_build_are_compared_along_their_axis(workshop: Workshop, built: Outcome) -> None:
    assert built.manifest is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(workshop.folder)
        patch.setenv("RKNN_TTS_CACHE", str(workshop.cache))
        found = simulated(built.manifest, Path(f"{ENGINE}.rknn"), fresh_steps(), Heard())
        with pytest.raises(Refusal, match="not at hand"):
            simulated(built.manifest, Path(f"{ENGINE}.rknn"), fresh_steps(force=True), Heard())
    ((name, along),) = found.curves
    assert (name, found.against) == ("audio", "onnxruntime on its graph")
    # The stand-in gives what onnxruntime does, a thousandth too loud: 60 dB wherever there is a sound.
    heard_db = along.db[np.isfinite(along.db)]
    assert heard_db.size > 100
    assert heard_db.tolist() == pytest.approx([60.0] * heard_db.size, abs=0.2)


def test_page_plays_what_the_voice_says(spoken: tuple[WrittenPage, Reading]) -> None:
    said = whole_voice(Recipe(), IDS, (0.0, 1.0, 0.0))["output"].reshape(-1)
    whole, windowed, engine = (samples_of(uri) for uri in spoken[1].attributes("audio", "src"))
    assert {rate for rate, _ in (whole, windowed, engine)} == {Recipe().sample_rate}
    assert snr_db(said, whole[1]) > 70
    assert snr_db(said, windowed[1]) > 70
    assert snr_db(said * 1.001, engine[1]) > 70  # what the stand-in's simulator makes of it


def test_page_tells_the_ratio_along_the_utterance(spoken: tuple[WrittenPage, Reading]) -> None:
    page = spoken[1]
    # The stand-in is a thousandth too loud everywhere: 60 dB in every block.
    assert page.facts["engine / original by windows"].startswith(
        ("the worst block has 60 dB", "the worst block has 59.9")
    )
    figures = {row[0]: float(row[1]) for row in page.tables["The sample"][1:]}
    assert figures["sample.engine"] == pytest.approx(60.0, abs=0.1)
    hop, frames = Recipe().hop, 109
    count = whole_voice(Recipe(), IDS, (0.0, 1.0, 0.0))["output"].size // hop
    windows = 2 + -(-(count - 2 * (frames - 32)) // (frames - 64))  # by hand: both ends, and 45 frames each between
    assert f"with the {windows - 1} seams between windows" in page.text


def test_page_is_the_same_when_it_is_written_again(
    workshop: Workshop, voice: str, spoken: tuple[WrittenPage, Reading]
) -> None:
    before = workshop.digest(f"{ENGINE}.html")
    write(workshop, f"{ENGINE}.rknn", checkpoint=voice, ids=",".join(map(str, IDS)))
    assert workshop.digest(f"{ENGINE}.html") == before


def test_page_needs_nothing_else(spoken: tuple[WrittenPage, Reading]) -> None:
    page = spoken[1]
    names = {tag for tag, _ in page.tags}
    assert names & {"script", "iframe", "object", "embed", "link", "form", "base"} == set()
    references = [
        value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href", "xlink:href")
    ]
    assert all(reference.startswith(("#", "data:")) for reference in references)
    ids = [attrs["id"] for tag, attrs in page.tags if "id" in attrs and tag in ("section", "article")]
    assert len(set(ids)) == len(ids)
    leads = {reference[1:] for reference in page.attributes("a", "href")}
    assert leads - {"top"} <= set(ids)
    (policy,) = (a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:")


def test_commands_on_the_page_build_the_same_engine(workshop: Workshop, spoken: tuple[WrittenPage, Reading]) -> None:
    manifest, lines = workshop.json(f"{ENGINE}.json"), spoken[1].lines
    commands = [shlex.split(line) for line in lines if line.startswith("./rknn-tts")]
    assert [words[1] for words in commands] == ["compile", "engine", "report"]
    for number, words in enumerate(commands[:2]):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(workshop.folder)
            patch.setenv("RKNN_TTS_CACHE", str(workshop.cache))
            place = f"again-{number}/"
            assert run([*words[1:], "--output", place]) == 0
        assert workshop.digest(f"{place}{manifest['engine']['file']}") == manifest["engine"]["sha256"]


def test_ladder_is_found_again_and_heard_as_a_board_picks_its_windows(workshop: Workshop, voice: str) -> None:
    built = workshop.build(checkpoint=voice, windows="96m,128t", output="ladder/")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(workshop.folder)
        patch.setenv("RKNN_TTS_CACHE", str(workshop.cache))
        steps, said = fresh_steps(), Heard()
        engines = [(one.manifest, Path(one.files[0])) for one in built.members if one.manifest is not None]
        rung = remade([Member(engines[0][0], engines[0][1].with_suffix(".onnx"))], voice, steps, said)
        hearing = heard(engines, voice, Sentence(ids=tuple(IDS)), steps, said)
    assert rung.command.endswith(f"--checkpoint {voice} --windows 96m")
    assert hearing.command.endswith(f"--checkpoint {voice} --windows 96m,128t")
    whole = whole_voice(Recipe(), IDS, (0.0, 1.0, 0.0))["output"].reshape(-1)
    assert snr_db(whole, hearing.spoken.windowed) > 95
    assert snr_db(whole, hearing.spoken.engine) == pytest.approx(60.0, abs=0.1)  # a thousandth too loud
    assert all(seam % Recipe().hop == 0 for seam in hearing.spoken.seams)
    assert len(hearing.spoken.seams) >= whole.size // Recipe().hop // 96 - 1


def test_page_says_what_is_missing_when_the_checkpoint_and_the_logs_are(
    workshop: Workshop, built: Outcome, tmp_path: Path
) -> None:
    for name in (f"{ENGINE}.rknn", f"{ENGINE}.json"):
        (tmp_path / Path(name).name).write_bytes((workshop.folder / name).read_bytes())
    done, page = write(workshop.beside("elsewhere"), f"{tmp_path}/piper-decoder-w109.rknn")
    told = " ".join(page.notices)
    assert "is not at hand: only its sums are known" in told
    assert "only what the manifest keeps of it is shown" in told
    assert "its twin piper-decoder-w109.onnx is not at hand" in told
    assert any("its twin piper-decoder-w109.onnx is not at hand" in note for note in done.notes)
    assert page.attributes("audio", "src") == []


def test_checkpoint_is_asked_for_when_it_is_a_file_of_the_users(workshop: Workshop, built: Outcome) -> None:
    done, _ = write(workshop, f"{ENGINE}.rknn", output="without.html")
    assert [note for note in done.notes if "mini.onnx is needed: --checkpoint names it" in note] != []


def test_checkpoint_is_refused_when_it_is_another_one(workshop: Workshop, built: Outcome) -> None:
    other = write_voice(workshop.folder.parent / "other.onnx", Recipe(seed=9))
    with pytest.raises(UserInput, match=r"is not the checkpoint of the engine, mini\.onnx"):
        write(workshop, f"{ENGINE}.rknn", checkpoint=str(other), output="x.html")
    assert not (workshop.folder / "x.html").exists()


def test_texts_of_files_stay_texts(tmp_path: Path) -> None:
    place = Workshop(tmp_path, tmp_path / "cache")
    write_engine(
        tmp_path,
        "a&b",
        f"{HOSTILE}.{HOSTILE}",
        HOSTILE,
        source=HOSTILE,
        inputs=(TensorSpec(HOSTILE, (1, 4)),),
        passes=(PassRecord(HOSTILE, 1, True, 1.0),),
        verdicts=(unproven(HOSTILE, HOSTILE, 3, HOSTILE), at_least("a.gate", 3.0, 2.0, "dB", "\x1b]0;title\x07<HALF>")),
        layers=Layers(1, 10, 5.0, 0.1, (CpuLayer(HOSTILE, HOSTILE, 5.0),), f"build-logs/{HOSTILE}"),
        log=LogSummary((RegtaskCount(HOSTILE, "0x1", 0, HOSTILE, "0x9", 3),), 1, (HOSTILE,), (HOSTILE,)),
    )
    manifest = tmp_path / "a&b.json"
    manifest.write_text(manifest.read_text().replace("<HALF>", "\\ud800"))
    for words in (["a&b.rknn"], ["."]):
        done, page = write(place, *words, output="out.html")
        assert {tag for tag, _ in page.tags} & {"script", "img"} == set()
        assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
        assert page.text.count(HOSTILE) > 8
        data = (tmp_path / done.file).read_bytes()
        assert b"\x1b" not in data
        assert "\\x1b]0;title\\x07\\ud800" in page.text


def engines_of_all_kinds(folder: Path) -> None:
    """A good engine, a stale, a broken and a missing manifest, and a file that is no engine."""
    good = write_engine(folder, "good", "piper.decoder", "w109", frames=109, verdicts=(unproven("log.regtask", "?"),))
    write_set(folder, "pair", good)
    write_engine(folder, "stale", "piper.decoder").write_bytes(engine_bytes())
    write_engine(folder, "broken", "piper.decoder").with_suffix(".json").write_text('{"schema": "rknn-tts/engine/1"')
    (folder / "bare.rknn").write_bytes(engine_bytes())
    write_engine(folder / "voice", "inner", "kokoro.generator")


def test_folder_compares_what_can_be_read_and_names_what_cannot(tmp_path: Path) -> None:
    engines_of_all_kinds(tmp_path / "engines")
    done, page = write(Workshop(tmp_path, tmp_path / "cache"), "engines", no_sample=True)
    assert done.file == "engines/report.html"
    rows = {row[0]: row for row in page.tables["Engines"][1:]}
    assert set(rows) == {"good", "stale", "broken", "bare", "voice/inner"}
    manifest = json.loads((tmp_path / "engines/good.json").read_text())
    assert rows["good"][1:4] == ["piper decoder, w109", "rk3588", "1 unproven"]
    assert rows["good"][-1] == manifest["engine"]["sha256"][:16]
    assert rows["voice/inner"][1] == "kokoro generator"
    for name in ("stale", "broken", "bare"):
        assert rows[name][2] == "-"
    told = " ".join((*page.notices, *done.notes))
    assert "is of another engine" in told
    assert "no manifest beside it (bare.json)" in told


def test_set_is_compared_by_its_members(tmp_path: Path) -> None:
    engines = [write_engine(tmp_path, name, "piper.decoder", name) for name in ("w128", "w256")]
    write_engine(tmp_path, "other", "piper.decoder")
    place = write_set(tmp_path, "ladder", *engines)
    (tmp_path / "w256.json").unlink()
    done, page = write(Workshop(tmp_path, tmp_path / "cache"), place.name, no_sample=True)
    assert [row[0] for row in page.tables["Engines"][1:]] == ["w128", "w256"]
    assert any("w256.json: there is no such file" in note for note in done.notes)


@pytest.mark.parametrize(
    ("words", "options", "sentence"),
    [
        (["empty"], {}, "empty: there is no engine in this folder"),
        (["missing.rknn"], {}, "missing.rknn: there is no such file"),
        (["notes.txt"], {}, "notes.txt: is neither an engine, nor"),
        (["a.rknn"], {"output": "page.pdf"}, "--output page.pdf: a folder or a file ending in .html"),
        (["a.rknn"], {"output": "mine.html"}, "mine.html: is no page of rknn-tts, and would be replaced"),
        (["a.rknn"], {"no_sample": True, "text": "hello"}, "--text is about a sample, and --no-sample leaves it out"),
        (["a.rknn"], {"ids": "1,x"}, "--ids 1,x: whole numbers"),
        (["a.rknn", "sub/b.rknn"], {}, "The engines stand in several folders"),
    ],
)
def test_page_is_refused_when_it_cannot_be_what_was_asked(
    tmp_path: Path, words: list[str], options: dict[str, Any], sentence: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "mine.html").write_text("<p>mine")
    write_engine(tmp_path, "a", "piper.decoder")
    write_engine(tmp_path / "sub", "b", "piper.decoder")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserInput) as refused:
        write(Workshop(tmp_path, tmp_path / "cache"), *words, **options)
    assert sentence in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_earlier_page_is_replaced(tmp_path: Path) -> None:
    place = Workshop(tmp_path, tmp_path / "cache")
    write_engine(tmp_path, "a", "piper.decoder", source="one.onnx")
    first, _ = write(place, "a.rknn", no_sample=True)
    write_engine(tmp_path, "a", "piper.decoder", source="two.onnx", kind=Source.__name__)
    again, page = write(place, "a.rknn", no_sample=True)
    assert (first.file, "two.onnx" in page.text) == (again.file, True)
