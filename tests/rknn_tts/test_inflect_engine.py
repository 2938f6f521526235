"""Inflect v2 through the commands: a small release to an export and an engine, and what damages of it come to."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

from contracts.errors import UserInput
from contracts.verdicts import Status
from converters.inflect.checkpoint import locate
from converters.inflect.decoder import open_decoder
from converters.inflect.seam import Seam, find_seam
from converters.stages import StageExport, StageOptions
from gates.session import Session
from rknn_tts.export_step import Proof, prove
from rknn_tts.outcome import Outcome
from rknn_tts.rewriting import rewrite
from surgery.declaration import Pass
from surgery.mask_decoder import mask_decoder
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.preflight import preflight
from tests.converters.hubs import no_hub
from tests.converters.inflect.releases import write_release
from tests.rknn_tts.workshop import Workshop, new_workshop
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model

SHORT_DB = 90.0
"""The issue's bound on short latents where the decoder is masked."""

NARROW = 128
"""Frames of the windows here: as many gates as 256, half the time."""


def open_session(model: ir.Model) -> Callable[..., object]:
    return Session(model, name="release").run


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("releases") / "Inflect-Small-v2")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return new_workshop(tmp_path_factory)


@pytest.fixture(scope="module")
def built(workshop: Workshop, release: Path) -> Outcome:
    return workshop.run("engine", family="inflect", checkpoint=str(release), target="rk3588", window=NARROW)


def test_release_becomes_an_engine_that_passes_every_gate(workshop: Workshop, built: Outcome) -> None:
    beginning = "engines/rk3588/Inflect-Small-v2/inflect-decoder-w128"
    assert built.files[0] == f"{beginning}.rknn"
    assert workshop.files() >= {
        f"{beginning}.rknn",
        f"{beginning}.json",
        f"{beginning}.onnx",
        "engines/rk3588/Inflect-Small-v2/inflect-host.onnx",
    }
    assert {verdict.status for verdict in built.verdicts} == {Status.PASSED}
    measured = {verdict.gate: verdict.measured for verdict in built.verdicts}
    for frames in (30, 47, 91):
        short = measured[f"fp32.prior_{frames}_frames.short"]
        assert isinstance(short, float)
        assert short >= SHORT_DB
    assert built.manifest is not None
    manifest = built.manifest
    assert manifest.window is not None
    assert (manifest.window.frames, manifest.window.emitted, manifest.window.hop) == (128, 64, 8)
    assert manifest.window.sample_rate == 16_000
    assert manifest.host is not None
    assert manifest.host.file == "inflect-host.onnx"
    assert [(spec.name, spec.shape) for spec in manifest.inputs] == [("z", (1, 8, 1, 128)), ("y_mask", (1, 1, 1, 128))]


def test_finished_graph_has_nothing_left_that_sizes_tensors(workshop: Workshop, built: Outcome) -> None:
    model = onnx.load(workshop.folder / built.files[0].replace(".rknn", ".onnx"))
    assert not {node.op_type for node in model.graph.node} & {
        "Shape",
        "ConstantOfShape",
        "Constant",
        "RandomNormalLike",
    }


def test_receptive_field_is_reported_by_context(built: Outcome) -> None:
    names = [figure.name for figure in built.measurements if figure.name.startswith("fp32.context_")]
    assert names == ["fp32.context_0", "fp32.context_20", "fp32.context_24", "fp32.context_32"]


def test_release_with_a_damaged_config_is_refused_before_anything_is_built(workshop: Workshop, tmp_path: Path) -> None:
    folder = write_release(tmp_path / "release")
    stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    stated["data"]["hop_length"] = 256
    (folder / "config.json").write_text(json.dumps(stated), encoding="utf-8")
    with pytest.raises(UserInput, match=r"config\.json says 256"):
        workshop.run("export", family="inflect", checkpoint=str(folder))


def test_slice_alone_is_exported_and_says_what_was_not_checked(workshop: Workshop, tmp_path: Path) -> None:
    onnx.save(decoder_model(Recipe(latent=8, strides=(4, 2))), tmp_path / "decoder_z.onnx")
    outcome = workshop.run("export", family="inflect", checkpoint=str(tmp_path / "decoder_z.onnx"), window=NARROW)
    assert {verdict.status for verdict in outcome.verdicts} == {Status.PASSED}
    own = next(verdict for verdict in outcome.verdicts if verdict.gate == "fp32.self")
    assert "degraded, for decode.onnx is not there" in own.detail
    assert any("the check is degraded" in note for note in outcome.notes)


def test_slice_that_is_compiled_alone_is_fed_a_mask_of_ones_and_says_so(workshop: Workshop, release: Path) -> None:
    """Drawn numbers for the mask would make a decoder that is masked at every rate overflow."""
    export = export_of(release)
    shapes = {"z": (1, 8, NARROW), "y_mask": (1, 1, NARROW)}
    masked = mask_decoder("y_mask").rewrite(normalise_static_inputs(shapes).rewrite(export.model).model).model
    onnx.save(ir.to_proto(masked), workshop.folder / "decoder_z.onnx")
    outcome = workshop.run("compile", model="decoder_z.onnx", target="rk3588")
    assert {verdict.status for verdict in outcome.verdicts} == {Status.PASSED}
    original = next(verdict for verdict in outcome.verdicts if verdict.gate == "fp32.original")
    assert "degraded to that, for nothing else is known of a slice" in original.detail
    assert any("The check is degraded: one window-length latent" in note for note in outcome.notes)


def export_of(release: Path, **options: object) -> StageExport:
    return open_decoder(locate(str(release), no_hub), StageOptions(window=NARROW, **options), open_session)("")  # type: ignore[arg-type]


def proof_of(export: StageExport, passes: tuple[Pass, ...] | None = None) -> Proof:
    run = (*(export.passes if passes is None else passes), *preflight())
    return prove(export, run, rewrite(export.model, run), open_session)  # type: ignore[arg-type]


def failed(proof: Proof) -> set[str]:
    return {verdict.gate for verdict in proof.verdicts if verdict.status is Status.FAILED}


def test_short_latents_fail_when_the_masks_are_lost(release: Path) -> None:
    export = export_of(release)
    lost = tuple(bound for bound in export.passes if bound.name != "mask_decoder")
    assert failed(proof_of(export, lost)) == {f"fp32.prior_{frames}_frames.short" for frames in (30, 47, 91)}


def test_short_latents_are_measured_when_the_masks_are_left_out(release: Path) -> None:
    proof = proof_of(export_of(release, no_decoder_mask=True))
    assert failed(proof) == set()
    short = [figure.measured for figure in proof.measurements if figure.name.endswith(".short")]
    assert len(short) == 3
    assert all(isinstance(figure, float) and figure < SHORT_DB for figure in short)


def test_seam_fails_when_the_cut_lies_behind_the_flow(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All else agrees there: host half, cut and reference move with it."""

    def behind_the_flow(model: ir.Model, where: str) -> Seam:
        made = {value.name: value.producer() for node in model.graph for value in node.outputs}
        post_flow = next(node for node in model.graph if "conv_pre" in str(node.name)).inputs[0]
        masked = made[post_flow.name if post_flow is not None else None]
        assert masked is not None
        latent = next(value for value in masked.inputs if value is not None and value.name != "y_mask")
        return dataclasses.replace(find_seam(model, where), latent=str(latent.name))

    monkeypatch.setattr("converters.inflect.voice.find_seam", behind_the_flow)
    assert failed(proof_of(export_of(release))) == {"seam.latent"}


def test_windows_fail_when_they_have_no_context(release: Path) -> None:
    proof = proof_of(export_of(release, context=0))
    assert failed(proof) >= {"fp32.prior_480_frames.whole", "fp32.noise_480_frames.whole"}


def test_cut_fails_when_it_is_another_graph(release: Path) -> None:
    export = export_of(release)
    other = ir.from_proto(decoder_model(Recipe(latent=8, strides=(4, 2))))
    mutated = dataclasses.replace(export, model=other)
    assert failed(proof_of(mutated)) >= {"fp32.prior_480_frames.whole"}
