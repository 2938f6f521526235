from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from contracts.contract import TensorSpec, Window
from contracts.errors import Refusal, UserInput
from converters.inflect.checkpoint import STAND_INS, locate
from converters.inflect.decoder import open_decoder, stem_of
from converters.inflect.stage import STAGE
from converters.stages import Evidence, Sentence, StageExport, StageOptions, WindowedDecode
from converters.vits_ladder import DecoderWindow
from surgery.mask_decoder import mask_decoder
from tests.converters.hubs import no_hub
from tests.converters.inflect.releases import SMALL, checkpoint, graphs, write_config, write_release, write_weights
from tests.onnx_runs import open_session, run, snr_db
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model


def export_of(path: Path | str, **options: Any) -> StageExport:
    return open_decoder(locate(str(path), no_hub), StageOptions(**options), open_session)("")


def decode_of(evidence: Evidence) -> WindowedDecode:
    assert evidence.decode is not None
    return evidence.decode


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("releases") / "Inflect-Small-v2")


@pytest.mark.parametrize(
    ("frames", "context", "masked", "stem"),
    [
        (256, 32, True, "inflect-decoder-w256"),
        (256, 32, False, "inflect-decoder-w256-unmasked"),
        (240, 24, True, "inflect-decoder-w240-c24"),
        (128, 32, True, "inflect-decoder-w128"),
    ],
)
def test_stem_of_is_the_width_and_what_it_does_not_tell(frames: int, context: int, masked: bool, stem: str) -> None:
    window = Window(frames, frames - 2 * context, context, context, 256, 24_000)
    assert stem_of(DecoderWindow(window, masked, None, takes_short=True)) == stem


def test_open_decoder_states_the_contract(release: Path) -> None:
    export = export_of(release)
    contract = export.contract
    assert (export.stem, export.host_file) == ("inflect-decoder-w256", "inflect-host.onnx")
    assert (contract.family, contract.stage) == ("inflect", "decoder")
    assert contract.inputs == (TensorSpec("z", (1, 8, 256)), TensorSpec("y_mask", (1, 1, 256)))
    assert contract.window == Window(256, 192, 32, 32, 8, 16_000)  # the rate is the config's, the hop 4 x 2
    assert contract.source.name == "Inflect-Small-v2.onnx"
    assert [bound.name for bound in export.passes] == [
        "normalise_static_inputs",
        "mask_decoder",
        "rewrite_interface_axes",
    ]
    (feed,), (padded,) = export.feeds, export.padded_feeds
    assert (feed["y_mask"] == 1).all()
    assert padded["y_mask"].reshape(-1).tolist() == [1.0] * 171 + [0.0] * 85  # a third of 256 is padding
    assert (padded["z"][..., 171:] == 0).all()


def test_published_graphs_need_no_torch(release: Path) -> None:
    """In a process of its own, where none can be imported."""
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from converters.inflect.stage import STAGE\n"
        "from converters.stages import StageOptions\n"
        "from gates.session import Session\n"
        "def open_session(model): return Session(model, name='r').run\n"
        "checkpoint = STAGE.locate(sys.argv[1], None)\n"
        "export = STAGE.open(checkpoint, StageOptions(), open_session)('')\n"
        "print(sorted(STAGE.extras | checkpoint.extras), export.stem, len(export.evidence().equalities))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(release)], capture_output=True, text=True, check=False)
    assert ran.stdout == "[] inflect-decoder-w256 3\n", ran.stderr


def test_open_decoder_leaves_the_masks_out_when_it_is_told(release: Path) -> None:
    export = export_of(release, no_decoder_mask=True)
    assert export.stem == "inflect-decoder-w256-unmasked"
    assert "mask_decoder" not in [bound.name for bound in export.passes]
    assert decode_of(export.evidence()).short_db is None
    walked = decode_of(export_of(release).evidence())
    assert (walked.interior_db, walked.whole_db, walked.short_db) == (95.0, 95.0, 90.0)


def test_evidence_is_of_the_published_graphs(release: Path) -> None:
    evidence = export_of(release, window=128).evidence()
    decode = decode_of(evidence)
    assert [u.name for u in decode.utterances] == [
        "prior_480_frames",
        "prior_30_frames",
        "prior_47_frames",
        "prior_91_frames",
        "noise_480_frames",
    ]
    # By hand: a mean that is the latent, with no deviation and no noise, is what decode.onnx is given.
    for utterance in decode.utterances:
        zeros = np.zeros_like(utterance.latent)
        feed = {"m_p_exp": utterance.latent, "logs_p_exp": zeros, "y_mask": utterance.mask, "zp_noise": zeros}
        waveform = run(graphs()[1], {**feed, "noise_scale": np.array(0, np.float32)})["waveform"]
        assert snr_db(waveform.reshape(-1), utterance.reference) >= 120.0
    for equality in evidence.equalities:
        assert equality.minimum_db == 120.0
        for name, reference in equality.reference.items():
            assert snr_db(np.asarray(reference), np.asarray(equality.measured[name])) >= 120.0
    assert [equality.gate for equality in evidence.equalities] == ["fp32.cut", "seam.latent", "host.latent"]


def test_weights_open_as_their_published_graphs_do(tmp_path: Path, release: Path) -> None:
    made, published = export_of(write_weights(tmp_path / "weights")), export_of(release)
    assert made.contract.source.name == "weights.pth"
    assert made.contract.window == published.contract.window
    assert made.host is not None
    feed = published.feeds[0]
    np.testing.assert_array_equal(made.feeds[0]["z"], feed["z"])
    assert snr_db(run(published.model, feed)["audio"], run(made.model, feed)["audio"]) >= 120.0


def test_weights_as_parametrizations_open_too(tmp_path: Path, release: Path) -> None:
    parts = {".weight_g": ".parametrizations.weight.original0", ".weight_v": ".parametrizations.weight.original1"}
    held = {}
    for name, tensor in checkpoint().items():
        old = next((part for part in parts if name.endswith(part)), None)
        held[name if old is None else name.removesuffix(old) + parts[old]] = tensor
    made, published = export_of(write_weights(tmp_path / "weights", held)), export_of(release)
    feed = published.feeds[0]
    assert snr_db(run(published.model, feed)["audio"], run(made.model, feed)["audio"]) >= 120.0


def _lacking(held: dict[str, torch.Tensor]) -> None:
    del held["dec.conv_post.weight"]


def _without_table(held: dict[str, torch.Tensor]) -> None:
    del held["enc_p.emb.weight"]


def _one_symbol(held: dict[str, torch.Tensor]) -> None:
    held["enc_p.emb.weight"] = held["enc_p.emb.weight"][:1]


def _too_much(held: dict[str, torch.Tensor]) -> None:
    held["emb_g.weight"] = torch.ones(4, 8)


def _half_a_norm(held: dict[str, torch.Tensor]) -> None:
    del held["dec.ups.0.weight_g"]


def _other_shape(held: dict[str, torch.Tensor]) -> None:
    held["dec.conv_pre.weight"] = torch.ones(16, 9, 7)


def _not_finite(held: dict[str, torch.Tensor]) -> None:
    held["dp.proj.bias"] = torch.tensor([float("nan")])


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_lacking, r"lacks 1 tensor: 'dec\.conv_post\.weight'"),
        (_without_table, r"it lacks the table enc_p\.emb\.weight"),
        (_one_symbol, r"its table enc_p\.emb\.weight has 1 row"),
        (_too_much, r"has what no Inflect model has, 1 tensor: 'emb_g\.weight'"),
        (_half_a_norm, r"'dec\.ups\.0\.weight_v' is half of a weight norm"),
        (_other_shape, r"the tensor 'dec\.conv_pre\.weight' is \(16, 9, 7\)"),
        (_not_finite, r"the tensor 'dp\.proj\.bias' holds numbers that are not finite"),
    ],
)
def test_weights_that_are_damaged_are_refused_by_name(tmp_path: Path, damage: object, told: str) -> None:
    held = checkpoint()
    assert callable(damage)
    damage(held)
    with pytest.raises(Refusal, match=rf"model\.pth: .*{told}"):
        export_of(write_weights(tmp_path, {"model": held}))


def test_open_decoder_names_both_hops_when_the_config_is_anothers(tmp_path: Path) -> None:
    write_config(write_release(tmp_path / "release"), hop_length=256)
    with pytest.raises(UserInput, match=r"has 8 samples a frame \(hop\), and config\.json says 256"):
        export_of(tmp_path / "release")


@pytest.mark.parametrize("content", [b"", b"no ONNX at all"])
def test_open_decoder_refuses_a_graph_that_is_no_onnx(tmp_path: Path, content: bytes) -> None:
    folder = write_release(tmp_path / "release")
    (folder / "onnx" / "duration.onnx").write_bytes(content)
    with pytest.raises(UserInput, match=r"duration\.onnx: is not an ONNX model"):
        export_of(folder)


def write_slice(folder: Path, frames: int | None = None, masked: bool = False) -> Path:
    model = decoder_model(Recipe(latent=6))
    if masked:
        import onnx_ir as ir

        model = ir.to_proto(mask_decoder("y_mask").rewrite(ir.from_proto(model)).model)
    for value in model.graph.input if frames is not None else ():
        value.type.tensor_type.shape.dim[2].dim_value = frames
    onnx.save(model, folder / "decoder_z.onnx")
    return folder / "decoder_z.onnx"


@pytest.mark.parametrize(("frames", "width"), [(None, 256), (80, 80)])
def test_slice_opens_with_what_is_known_of_it(tmp_path: Path, frames: int | None, width: int) -> None:
    export = export_of(write_slice(tmp_path, frames))
    assert export.stem == f"inflect-decoder-w{width}"
    assert export.contract.inputs[0] == TensorSpec("z", (1, 6, width))
    assert export.contract.window == Window(width, width - 64, 32, 32, 16, 24_000)
    assert export.host is None
    assert any("decode.onnx and duration.onnx are not there: the check is degraded" in note for note in export.notes)
    assert "mask_decoder" in [bound.name for bound in export.passes]


def test_slice_that_is_masked_is_not_masked_again(tmp_path: Path) -> None:
    path = write_slice(tmp_path, masked=True)
    export = export_of(path)
    assert "mask_decoder" not in [bound.name for bound in export.passes]
    assert export.stem == "inflect-decoder-w256"
    assert decode_of(export.evidence()).short_db == 90.0
    with pytest.raises(UserInput, match=r"--no-decoder-mask: the decoder in .* is masked already"):
        export_of(path, no_decoder_mask=True)


def test_slice_that_is_pinned_refuses_another_window(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"--window 96: .*decoder_z\.onnx is of 80 frames, and of no others"):
        export_of(write_slice(tmp_path, 80), window=96)


def test_slice_speaks_nothing(tmp_path: Path) -> None:
    export = export_of(write_slice(tmp_path))
    assert export.read is not None
    with pytest.raises(UserInput, match="--sample: a slice has nothing that makes a latent of ids"):
        export.read(Sentence(ids=(1,)), lambda: None)


@pytest.mark.parametrize(
    ("word", "stem", "host"),
    [
        ("random", "inflect-decoder-w256", "inflect-host.onnx"),
        ("random-nano", "inflect-decoder-w256-nano", "inflect-nano-host.onnx"),
    ],
)
def test_stand_ins_have_places_of_their_own(monkeypatch: pytest.MonkeyPatch, word: str, stem: str, host: str) -> None:
    small = {name: (said, SMALL) for name, (said, _) in STAND_INS.items()}  # the true sizes take half a minute
    monkeypatch.setattr("converters.inflect.opening.STAND_INS", small)
    export = export_of(word)
    assert (export.stem, export.host_file) == (stem, host)
    assert export.contract.source.kind == "random"
    assert "a stand-in for a checkpoint" in export.notes[0]
    assert export.contract.window == Window(256, 192, 32, 32, 8, 16_000)


def test_stage_names_what_it_takes() -> None:
    assert (STAGE.family, STAGE.name) == ("inflect", "decoder")
    assert STAGE.options == {"window", "windows", "context", "no_decoder_mask"}
    assert "random-nano" in STAGE.checkpoints
    assert SMALL.hop == 8


def test_ladder_has_an_engine_a_width_with_its_form(release: Path) -> None:
    opened = open_decoder(locate(str(release), no_hub), StageOptions(windows="128m,160t"), open_session)
    masked, trimmed = opened("w128"), opened("w160")
    assert [masked.stem, trimmed.stem] == ["inflect-decoder-w128", "inflect-decoder-w160-trimmed"]
    assert trimmed.contract.trim is not None
    assert (len(masked.padded_feeds), len(trimmed.padded_feeds), len(trimmed.added_inputs)) == (1, 0, 3)
    one, other = masked.evidence(), trimmed.evidence()
    assert all(a is b for a, b in zip(one.equalities, other.equalities, strict=True))
    assert [u.name for u in decode_of(other).utterances] == [
        "prior_480_frames",
        "prior_160_frames",
        "noise_480_frames",
        "noise_160_frames",
    ]
    assert len(one.measurements) > len(other.measurements) == 0


def test_slice_makes_one_engine_and_has_no_default_ladder(tmp_path: Path) -> None:
    path = tmp_path / "decoder_z.onnx"
    onnx.save(decoder_model(Recipe(latent=6)), path)
    checkpoint = locate(str(path), no_hub)
    assert STAGE.settled(StageOptions(), "rk3588", checkpoint) == StageOptions()
    with pytest.raises(UserInput, match=r"^--windows 128m: .*decoder_z\.onnx is a slice, of which one engine is made"):
        open_decoder(checkpoint, StageOptions(windows="128m"), open_session)


def test_default_ladder_is_settled_when_a_release_is_named(release: Path) -> None:
    settled = STAGE.settled(StageOptions(), "rk3588", locate(str(release), no_hub))
    assert settled.windows is not None
