"""A small voice goes the way that every voice goes by default: a ladder of windows, built and judged whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from rknn_tts_runtime.ladders import rung_of
from rknn_tts_runtime.manifest import manifest_of
from rknn_tts_runtime.window_cover import RunRung, cover_utterance, walk_cover

from contracts.verdicts import Status
from converters.vits_ladder import MASKED, TRIMMED, default_windows, rungs_of
from rknn_tts.outcome import Outcome
from tests.onnx_runs import open_session, run, snr_db
from tests.rknn_tts.workshop import Workshop, new_workshop
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model, write_voice

LADDER = rungs_of(default_windows()["piper.decoder"].get("rk3588", default_windows()["piper.decoder"]["default"]))
RECIPE = Recipe()
FORM = {MASKED: "masked", TRIMMED: "trimmed"}
WHOLE_DB = 95.0
"""What the gates ask of windows that are stitched."""

Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, Outcome]:
    shop = new_workshop(tmp_path_factory)
    write_voice(shop.folder / "mini.onnx", RECIPE)
    return shop, shop.run("engine", family="piper", target="rk3588", checkpoint="mini.onnx", windows=None)


def folder_of(built: tuple[Workshop, Outcome]) -> Path:
    return built[0].folder / "engines/rk3588/mini"


def stem(width: int, letter: str) -> str:
    return "-".join(filter(None, (f"piper-decoder-w{width}", FORM.get(letter))))


def test_ladder_is_a_set_whose_roles_are_its_widths(built: tuple[Workshop, Outcome]) -> None:
    members = built[0].json("engines/rk3588/mini/piper-decoder.set.json")
    assert members["roles"] == {rung.role: f"{stem(rung.frames, rung.letter)}.rknn" for rung in LADDER}
    assert not [verdict for verdict in built[1].verdicts if verdict.status is not Status.PASSED]


def test_every_rung_has_its_form_and_is_simulated_at_all_its_places(built: tuple[Workshop, Outcome]) -> None:
    for rung in LADDER:
        manifest = built[0].json(f"engines/rk3588/mini/{stem(rung.frames, rung.letter)}.json")
        names = {item["name"] for item in manifest["passes"]}
        assert ("mask_decoder" in names, "trim_decoder" in names) == (rung.letter == MASKED, rung.letter == TRIMMED)
        assert (manifest["trim"] is not None) is (rung.letter == TRIMMED)
        assert manifest["layers"]["cpu"] == []
        (simulated,) = [item["detail"] for item in manifest["verdicts"] if item["gate"] == "simulator"]
        assert f"the worst of {3 if rung.letter == TRIMMED else 2} windows" in simulated


def runner(twin: onnx.ModelProto) -> RunRung:
    session = open_session(twin)

    def decoded(latent: Floats, mask: Floats, place: Floats | None) -> Floats:
        wide = {"z": latent[:, :, None], "y_mask": mask[:, :, None]}
        return np.asarray(session(wide if place is None else {**wide, "place": place})["audio"], np.float32)

    return decoded


@pytest.mark.parametrize("frames", [40, 200, 700])
def test_utterances_are_what_the_voice_decodes_whole_when_windows_are_mixed(
    built: tuple[Workshop, Outcome], frames: int
) -> None:
    stems = [stem(rung.frames, rung.letter) for rung in LADDER]
    rungs = [rung_of(manifest_of(folder_of(built) / f"{name}.rknn")) for name in stems]
    runs = [runner(onnx.load(str(folder_of(built) / f"{name}.onnx"))) for name in stems]
    latent = np.random.default_rng(5).standard_normal((1, RECIPE.latent, frames)).astype(np.float32)
    mask = np.ones((1, 1, frames), np.float32)
    whole = run(decoder_model(RECIPE), {"z": latent, "y_mask": mask})["audio"].reshape(-1)
    parts = [samples for _, samples in walk_cover(runs, [latent, mask], rungs, RECIPE.hop)]
    assert snr_db(whole, np.concatenate(parts)) >= WHOLE_DB
    assert sum(step.emit_stop - step.emit_start for step in cover_utterance(frames, rungs)) == frames
