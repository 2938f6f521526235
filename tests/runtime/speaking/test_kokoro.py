"""A plan of a small Kokoro to samples, on its twins: what the original modules say by windows laid out by hand."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput, Mismatch, RunFault
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaking import kokoro
from rknn_tts_runtime.speaking.kokoro import KokoroSpeaker, open_kokoro
from rknn_tts_runtime.speaking.speaker import Asked
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.voice_keys import VOICE_METADATA

from tests.docs.test_speak_kokoro import samples_of
from tests.kokoro_writer.speaking import VOCABULARY
from tests.kokoro_writer.windowed import CONTEXT, WIDTH
from tests.onnx_runs import snr_db
from tests.runtime.speaking.kokoro_set import HOP, HOST, RATE, VOICES, Array, KokoroSet, write_set

SHORT, LONG = "ai.", "aeiokʨɯn"
LEAST_DB = 90.0
"""Of the same arithmetic in fp32, in torch and in onnxruntime."""

FAR_DB = 60.0
"""Less is another arithmetic."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> KokoroSet:
    return write_set(tmp_path_factory.mktemp("kokoro"))


@pytest.fixture(scope="module")
def speaker(made: KokoroSet) -> KokoroSpeaker:
    return opened(made.plan("whole.json"))


def opened(plan: Path, **options: Any) -> KokoroSpeaker:
    return open_kokoro(read_plans(plan)["kokoro"], TwinBackend(threads=1), **options)


def asked(made: KokoroSet, **said: Any) -> Asked:
    return Asked(**{"voice": Path(f"{made.folder / VOICES}:second"), "seed": 3, **said})


def said(speaker: KokoroSpeaker, asked: Asked) -> Array:
    return np.concatenate(list(speaker.speak(asked, Stopwatch())))


@pytest.mark.parametrize(("phonemes", "is_short"), [(SHORT, True), (LONG, False)])
def test_kokoro_says_what_the_original_says(
    made: KokoroSet, speaker: KokoroSpeaker, phonemes: str, is_short: bool
) -> None:
    seam = made.seam(phonemes, seed=3)
    frames = seam[0].shape[-1]
    assert (frames < WIDTH) == is_short
    wanted = samples_of(made.whole(*seam) if is_short else made.by_windows(*seam))
    got = said(speaker, asked(made, phonemes=phonemes))
    assert got.dtype == np.float32
    assert got.shape == (frames * HOP,)
    assert snr_db(wanted, got) > LEAST_DB
    assert speaker.sample_rate == 24000


def test_kokoro_streams_a_piece_for_each_window_and_times_its_stages(made: KokoroSet, speaker: KokoroSpeaker) -> None:
    stopwatch, first = Stopwatch(), 0
    runs = []
    for piece in speaker.speak(asked(made, phonemes=LONG), stopwatch):
        first = first or piece.size
        runs.append(stopwatch.stages["generator"].runs)
    frames = made.seam(LONG, seed=3)[0].shape[-1]
    # The first window emits 24 frames, the others 16 each, and the last what is left.
    windows = 1 + -(-(frames - WIDTH) // (WIDTH - 2 * CONTEXT))
    assert runs[0] == 1
    assert runs[-1] == windows
    # All of a window but the samples that the next one's first columns still add to.
    assert 0 < (WIDTH - CONTEXT) * HOP - first <= 20
    assert list(stopwatch.stages) == ["phonemes", "host half", "generator", "istft"]


def test_ids_and_phonemes_say_the_same(made: KokoroSet, speaker: KokoroSpeaker) -> None:
    ids = (0, *(VOCABULARY[sign] for sign in SHORT), 0)
    assert np.array_equal(said(speaker, asked(made, ids=ids)), said(speaker, asked(made, phonemes=SHORT)))


def test_a_text_is_said_line_by_line(made: KokoroSet, speaker: KokoroSpeaker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[tuple[str, str]] = []

    def phonemise(language: str, text: str) -> list[str]:
        asked_for.append((language, text))
        return [SHORT, "aXi"]

    monkeypatch.setattr(speaker, "_phonemise", phonemise)
    monkeypatch.setattr(speaker, "_notes", ())
    voice = made.folder / "jf_second.npy"
    with np.load(made.folder / VOICES) as voices:
        np.save(voice, voices["second"])
    got = said(speaker, asked(made, text="words", voice=voice))
    wanted = [samples_of(made.whole(*made.seam(phonemes, 3, place=i))) for i, phonemes in enumerate((SHORT, "ai"))]
    assert asked_for == [("j", "words")]
    assert snr_db(np.concatenate(wanted), got) > LEAST_DB
    assert speaker.notes == ("The Kokoro in kokoro-host.onnx does not have 'X' (U+0058): left out.",)


def test_the_seed_decides_the_noise(made: KokoroSet, speaker: KokoroSpeaker) -> None:
    first, again, other = (said(speaker, asked(made, phonemes=SHORT, seed=seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_more_noise_is_drawn_where_the_first_does_not_suffice(
    made: KokoroSet, speaker: KokoroSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = said(speaker, asked(made, phonemes=SHORT))
    monkeypatch.setattr(kokoro, "USUAL_FRAMES", (3, 0))
    assert np.array_equal(said(speaker, asked(made, phonemes=SHORT)), wanted)


def test_speed_goes_to_the_host_half(made: KokoroSet, speaker: KokoroSpeaker) -> None:
    frames = {speed: made.seam(LONG, 3, speed)[0].shape[-1] for speed in (0.5, 1.0)}
    assert frames[0.5] > frames[1.0]
    assert said(speaker, asked(made, phonemes=LONG, speed=0.5)).size == frames[0.5] * HOP


def test_windows_cross_fade_over_the_overlap_of_the_plan(made: KokoroSet) -> None:
    faded = opened(made.plan(params={"overlap": 4}))
    seam = made.seam(LONG, seed=3)
    wanted = samples_of(made.by_windows(*seam, overlap=4))
    got = said(faded, asked(made, phonemes=LONG))
    faded.close()
    assert snr_db(wanted, got) > LEAST_DB
    assert snr_db(samples_of(made.by_windows(*seam)), got) < FAR_DB


@pytest.mark.parametrize("phonemes", [SHORT, LONG])
def test_gain_gives_windows_the_loudness_of_the_callers_decode(made: KokoroSet, phonemes: str) -> None:
    given: list[tuple[int, ...]] = []

    def twice_as_loud(x: Array, har: Array, style: Array) -> Array:
        given.append(x.shape)
        columns = made.by_windows(x, har, style) if x.shape[-1] > WIDTH else made.whole(x, har, style)
        columns[:, :11] += np.log(2, dtype=np.float32)
        return columns

    louder = opened(made.plan(params={"gain": True}), full_length=twice_as_loud)
    seam = made.seam(phonemes, seed=3)
    as_it_is = made.by_windows(*seam) if seam[0].shape[-1] > WIDTH else made.whole(*seam)
    assert snr_db(2 * samples_of(as_it_is), said(louder, asked(made, phonemes=phonemes))) > LEAST_DB
    assert given == [seam[0].shape]


def test_gain_refuses_a_decode_of_another_length(made: KokoroSet) -> None:
    louder = opened(made.plan(params={"gain": True}), full_length=lambda x, har, style: har[..., 1:])
    with pytest.raises(RunFault, match=r"full-length decode has the shape .*, expected \[1, 22, "):
        said(louder, asked(made, phonemes=SHORT))


def test_an_engine_with_masks_pads_by_itself(made: KokoroSet) -> None:
    alone = opened(made.plan(artifacts={"main": "short.rknn"}))
    for phonemes in (SHORT, LONG):
        seam = made.seam(phonemes, seed=3)
        wanted = samples_of(made.whole(*seam) if seam[0].shape[-1] < WIDTH else made.by_windows(*seam))
        assert snr_db(wanted, said(alone, asked(made, phonemes=phonemes))) > LEAST_DB


def test_what_is_shorter_than_a_window_needs_the_engine_for_it(made: KokoroSet) -> None:
    full = opened(made.plan(artifacts={"main": "full.rknn"}))
    assert said(full, asked(made, phonemes=LONG)).size
    with pytest.raises(BadInput, match=rf"full\.rknn: takes utterances of {WIDTH} frames and more"):
        said(full, asked(made, phonemes=SHORT))


def test_engines_are_let_go(made: KokoroSet) -> None:
    gone = opened(made.plan())
    gone.close()
    gone.close()
    with pytest.raises(RunFault, match="is closed"):
        said(gone, asked(made, phonemes=SHORT))


def test_there_is_nothing_to_note_of_a_real_checkpoint(speaker: KokoroSpeaker) -> None:
    assert speaker.notes == ()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"voice": None}, "give one with --voice FILE"),
        ({"voice": Path("nobody.npy")}, r"--voice nobody\.npy: there is no such file"),
        ({"speaker": 1}, "--speaker 1: Kokoro has no numbered speakers"),
        ({"speed": 0.0}, r"--speed 0\.0: a number above 0 is expected"),
        ({"speed": float("nan")}, "--speed nan: a number above 0 is expected"),
        ({"phonemes": "aXi"}, r"--phonemes: the Kokoro in kokoro-host\.onnx does not have 'X' \(U\+0058\)"),
    ],
)
def test_what_cannot_be_said_is_refused(
    made: KokoroSet, speaker: KokoroSpeaker, wrong: dict[str, Any], says: str
) -> None:
    stopwatch = Stopwatch()
    with pytest.raises(BadInput, match=says):
        list(speaker.speak(asked(made, **{"phonemes": SHORT, **wrong}), stopwatch))
    assert "host half" not in stopwatch.stages


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"params": {"overlap": 16}}, r"overlap is 16, and a window of full\.rknn emits 16 frames: 15 at most"),
        ({"params": {"gain": True}}, r"gain compares with a decode of the whole .* artifacts\.full_length"),
        ({"impl": "ggml", "artifacts": {}}, r"places no generator of kokoro on the NPU"),
        ({"artifacts": {"main": "full.rknn", "short": "full.rknn"}}, r"full\.rknn: takes no masks"),
        ({"artifacts": {"main": "full.rknn", "host": VOICES}}, r"voices_ja\.npz: its digest is .* host half"),
    ],
)
def test_plans_that_do_not_fit_are_refused(made: KokoroSet, changed: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        opened(made.plan(**changed))


def copied(made: KokoroSet, folder: Path) -> KokoroSet:
    shutil.copytree(made.folder, folder, dirs_exist_ok=True)
    return KokoroSet(folder, made.weights, made.original)


def change(folder: Path, role: str, *keys: Any, value: Any) -> None:
    """Set one key of a manifest."""
    path = folder / f"{role}.json"
    data = place = json.loads(path.read_text(encoding="utf-8"))
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(data), encoding="utf-8")


NARROWER = {"frames": WIDTH, "emitted": 18, "left": 7, "right": 7, "hop": HOP, "sample_rate": 24000}


@pytest.mark.parametrize(
    ("role", "keys", "value", "says"),
    [
        ("full", ["stage"], "decoder", "is taken for the generator of kokoro, and is the decoder of kokoro"),
        ("full", ["window"], None, r"full\.json: tells of no window"),
        ("full", ["window", "hop"], 256, r"full\.rknn has 256 samples a frame at 24000 Hz, kokoro-host\.onnx 300"),
        ("full", ["window", "sample_rate"], 22050, r"full\.rknn has 300 samples a frame at 22050 Hz"),
        ("full", ["inputs", 0, "shape"], [1, 8, 1, WIDTH], r"full\.rknn: its x has 256 numbers.* it must have 512"),
        ("full", ["inputs", 2, "shape"], [1, 6], r"full\.rknn: its style has 6 numbers"),
        ("full", ["inputs", 2, "name"], "stats_in", r"full\.rknn: takes x, har, stats_in, expected x, har, style"),
        ("full", ["outputs", 0, "shape"], [1, 22, 1, 60 * WIDTH], r"full\.rknn: its spec_phase has 42240 numbers"),
        ("short", ["window"], NARROWER, r"full\.rknn and short\.rknn are of two exports"),
        (
            "short",
            ["host", "sha256"],
            "cd" * 32,
            r"host\.onnx: its digest is .* short\.json has the digest cdcdcdcd",
        ),
    ],
)
def test_engines_that_do_not_belong_together_are_refused(
    made: KokoroSet, tmp_path: Path, role: str, keys: list[Any], value: Any, says: str
) -> None:
    mine = copied(made, tmp_path)
    change(tmp_path, role, *keys, value=value)
    with pytest.raises(Mismatch, match=says):
        opened(mine.plan())


def test_the_manifest_names_the_host_half_where_the_plan_does_not(made: KokoroSet, tmp_path: Path) -> None:
    mine = copied(made, tmp_path)
    alone = opened(mine.plan(artifacts={"main": "full.rknn"}))
    assert said(alone, asked(mine, phonemes=LONG)).size
    change(tmp_path, "full", "host", value=None)
    with pytest.raises(BadInput, match=r"full\.json: names no host half"):
        opened(mine.plan(artifacts={"main": "full.rknn"}))


def card_changed(**keys: Any) -> Any:
    def edit(model: onnx.ModelProto) -> None:
        (entry,) = (entry for entry in model.metadata_props if entry.key == VOICE_METADATA)
        entry.value = json.dumps({**json.loads(entry.value), **keys})

    return edit


def without_card(model: onnx.ModelProto) -> None:
    del model.metadata_props[:]


def without_style(model: onnx.ModelProto) -> None:
    model.graph.output.remove(next(value for value in model.graph.output if value.name == "style"))


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (without_card, r"kokoro-host\.onnx: tells nothing of its voice"),
        (card_changed(n_fft=30), r"har has 22 rows, and n_fft 30 makes 32"),
        (card_changed(family="piper"), r"is a host half of piper, not of kokoro"),
        (without_style, r"has no output style of 2 axes"),
    ],
)
def test_host_halves_that_are_none_of_kokoros_are_refused(
    made: KokoroSet, tmp_path: Path, edit: Any, says: str
) -> None:
    mine = copied(made, tmp_path)
    model = onnx.load(tmp_path / HOST)
    edit(model)
    onnx.save(model, tmp_path / HOST)
    digest = sha256((tmp_path / HOST).read_bytes()).hexdigest()
    for role in ("full", "short"):
        change(tmp_path, role, "host", "sha256", value=digest)
    with pytest.raises(BadInput, match=says):
        opened(mine.plan())


def test_an_engine_that_was_opened_is_closed_where_the_other_is_refused(made: KokoroSet, tmp_path: Path) -> None:
    mine = copied(made, tmp_path)
    (tmp_path / "short.onnx").write_bytes(b"none")
    backend = TwinBackend(threads=1)
    closed: list[str] = []
    open_one = backend.open

    def watched(manifest: Any) -> Any:
        engine = open_one(manifest)
        close = engine.close

        def noted() -> None:
            closed.append(manifest.engine.name)
            close()

        engine.close = noted  # type: ignore[method-assign]
        return engine

    backend.open = watched  # type: ignore[method-assign]
    with pytest.raises(Mismatch, match=r"short\.onnx: its digest"):
        open_kokoro(read_plans(mine.plan())["kokoro"], backend)
    assert closed == ["full.rknn"]


def test_numbers_that_are_not_finite_are_a_failed_run(made: KokoroSet, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = opened(made.plan())
    nothing = np.full((1, 22, 1, RATE * WIDTH + 1), np.nan, np.float32)
    monkeypatch.setattr(broken._short.engine, "run", lambda feed: {"spec_phase": nothing})  # type: ignore[union-attr]
    with pytest.raises(RunFault, match=r"short\.rknn: gave numbers that are not finite"):
        said(broken, asked(made, phonemes=SHORT))
