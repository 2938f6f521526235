"""A `hift.pt`: what is read of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.errors import Refusal, UserInput
from converters.cosyvoice2.hift import STAGE
from converters.cosyvoice2.hift_file import OpenHift, open_hift
from models.cosyvoice2.hift_config import TRUE_CONFIG, layout
from tests.converters.hubs import no_hub
from tests.cosyvoice2_hift import SMALL, Floats, raw_weights, weights_of, write_hift


def opened(path: Path) -> OpenHift:
    assert STAGE.locate is not None
    return open_hift(STAGE.locate(str(path), no_hub))


@pytest.mark.parametrize("prefix", ["", "generator."])
def test_file_is_read_with_and_without_its_prefix(tmp_path: Path, prefix: str) -> None:
    got = opened(write_hift(tmp_path / "hift.pt", prefix))
    assert got.config == SMALL
    assert list(got.weights) == list(layout(SMALL))
    for name, owed in weights_of().items():
        np.testing.assert_array_equal(got.weights[name], owed)


def test_older_spelling_of_weight_norm_is_read(tmp_path: Path) -> None:
    stem = "conv_pre.parametrizations.weight.original"
    gain, direction = raw_weights()[f"{stem}0"], raw_weights()[f"{stem}1"]
    change: dict[str, Floats | None] = {f"{stem}0": None, f"{stem}1": None}
    got = opened(
        write_hift(tmp_path / "hift.pt", change={**change, "conv_pre.weight_g": gain, "conv_pre.weight_v": direction})
    )
    np.testing.assert_array_equal(got.weights["conv_pre.weight"], weights_of()["conv_pre.weight"])


def test_folder_with_the_file_is_a_checkpoint(tmp_path: Path) -> None:
    write_hift(tmp_path / "hift.pt")
    assert opened(tmp_path).config == SMALL


def test_what_training_keeps_beside_the_vocoder_is_left_out(tmp_path: Path) -> None:
    path = write_hift(tmp_path / "hift.pt", "generator.")
    held = torch.load(path, weights_only=True)
    counts = {"discriminator.steps": torch.tensor(7), "discriminator.weight": torch.zeros(2, dtype=torch.float16)}
    torch.save({**held, **counts, "epoch": 3, "step": 9}, path)
    assert list(opened(path).weights) == list(layout(SMALL))


def test_random_has_the_true_sizes() -> None:
    assert opened(Path("random")).config == TRUE_CONFIG


def zeros(*shape: int) -> Floats:
    return np.zeros(shape, np.float32)


UPS = "ups.1.parametrizations.weight"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"conv_pre.parametrizations.weight.original1": zeros(32, 10, 5)},
            "conv_pre has a kernel of 5 and not 7, as the causal vocoder of CosyVoice3 has",
        ),
        (
            {f"ups.2.parametrizations.weight.original{part}": None for part in (0, 1)},
            "upsamples in fewer than 3 stages, as CosyVoice1's vocoder of 22.05 kHz does",
        ),
        ({"resblocks.4.activations1.1.alpha": None}, "lacks 1 of 246 tensors: resblocks.4.activations1.1.alpha"),
        ({"conv_post.bias": zeros(22)}, r"1 tensors have other sizes: conv_post.bias is \[22\], not \[18\]"),
        (
            {"conv_post.bias": np.full(18, np.nan, np.float32)},
            "1 tensors hold NaN or infinity, so nothing right can come of it: conv_post.bias",
        ),
        ({"f0_predictor.condnet.0.parametrizations.weight.original1": None}, "it has no conv_pre and f0_predictor"),
        (
            {
                "conv_pre.parametrizations.weight.original0": zeros(30, 1, 1),
                "conv_pre.parametrizations.weight.original1": zeros(30, 10, 7),
            },
            "has 30 channels, which 3 stages cannot halve",
        ),
        ({f"{UPS}.original0": zeros(31, 1, 1)}, rf"{UPS}.original0 \[31, 1, 1\], {UPS}.original1 \[16, 8, 11\] do not"),
        ({f"{UPS}.original0": zeros(1)}, rf"{UPS}.original0 \[1\], .* do not fit each other"),
        ({f"{UPS}.original1": zeros()}, rf"{UPS}.original1 \[\] do not fit each other"),
        ({"ups.3.bias": zeros(3)}, "it has 1 tensors more, of parts that are not computed here: ups.3.bias"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, Floats | None], said: str) -> None:
    with pytest.raises(Refusal, match=said) as raised:
        opened(write_hift(tmp_path / "hift.pt", change=change))
    assert str(tmp_path / "hift.pt") in str(raised.value)


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    path = write_hift(tmp_path / "hift.pt")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UserInput, match="is no torch checkpoint, or is damaged"):
        opened(path)
