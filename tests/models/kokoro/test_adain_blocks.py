from __future__ import annotations

import warnings

import pytest
import torch

from models.kokoro.adain_blocks import AdainBlock
from models.weight_norm import folded
from tests.kokoro_reference import kokoro_module
from tests.models.kokoro.checkpoints import drawn, snr_db

STYLE, COLUMNS = 5, 7


@pytest.mark.parametrize(
    ("ins", "outs", "doubles"), [(6, 6, False), (6, 4, False), (6, 6, True), (6, 3, True)], ids=str
)
def test_block_is_the_references(ins: int, outs: int, doubles: bool) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        reference = kokoro_module("istftnet").AdainResBlk1d(ins, outs, STYLE, upsample=True if doubles else "none")
    with torch.no_grad():
        for name, parameter in reference.named_parameters():  # the affine step of the instance norm among them
            parameter.copy_(
                torch.randn_like(parameter).abs() + 0.1 if name.endswith("_g") else torch.randn_like(parameter)
            )
    weights = {name: tensor.numpy(force=True) for name, tensor in reference.state_dict().items()}
    x, style = drawn(1, ins, COLUMNS), drawn(1, STYLE, seed=1)
    with torch.inference_mode():
        wanted = reference.eval()(x, style)
        got = AdainBlock(folded(weights))(x, style)
    assert got.shape == (1, outs, COLUMNS * (2 if doubles else 1))
    assert snr_db(wanted, got) > 120


def test_block_has_no_affine_step_when_the_checkpoint_has_none() -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        reference = kokoro_module("istftnet").AdainResBlk1d(4, 4, STYLE).eval()  # the reference's are 1 and 0
    weights = {
        name: tensor.numpy(force=True) for name, tensor in reference.state_dict().items() if ".norm." not in name
    }
    x, style = drawn(1, 4, COLUMNS), drawn(1, STYLE, seed=1)
    with torch.inference_mode():
        assert snr_db(reference(x, style), AdainBlock(folded(weights))(x, style)) > 120
