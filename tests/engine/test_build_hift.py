"""The real toolkit on CosyVoice2's source convolution of stride 15, and on a residual block, as they are exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from logs.layer_table import parse_layer_table
from models.cosyvoice2.hift import ResidualBlock, SourceDown
from models.tracing import traced
from surgery.preflight import preflight
from surgery.rewrite_interface_axes import rewrite_interface_axes
from surgery.rewrite_sines import rewrite_sines
from surgery.sine_forms import Form
from tests.cosyvoice2_hift import drawn
from tests.engine.toolkit_runs import built
from tests.onnx_runs import as_proto, snr_db

FRAMES, CHANNELS, STRIDE = 32, 32, 15


class Branch(nn.Module):
    """The first stage's branch of the source."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.block = SourceDown(18, CHANNELS, STRIDE), ResidualBlock(CHANNELS, 7)
        for place, (name, held) in enumerate(self.state_dict().items()):
            size = 0.3 if name.endswith("bias") else 1 / np.sqrt(held[0].numel())
            held.copy_(torch.from_numpy(drawn(tuple(held.shape), place, size)))
            if name.endswith("alpha"):
                held.abs_().add_(0.5)

    def forward(self, har: Tensor) -> Tensor:
        """Har [1, 18, 120 W + 1] -> [1, C, 8 W]."""
        out: Tensor = self.block(self.down(har))
        return out


def original(branch: Branch, har: Tensor) -> Tensor:
    """The branch with the strided convolution itself."""
    down = branch.down
    out: Tensor = branch.block(functional.conv1d(har, down.weight, down.bias, stride=STRIDE, padding=STRIDE // 2))
    return out


@pytest.fixture(scope="module")
def branch() -> Branch:
    return Branch().eval().requires_grad_(False)


@pytest.fixture(scope="module")
def har() -> Tensor:
    return torch.from_numpy(drawn((1, 18, 120 * FRAMES + 1), 1))


@pytest.fixture(scope="module")
def exported(branch: Branch, har: Tensor) -> bytes:
    # Of the module's scope, as torch leaves a folder of its own where temporary files go.
    written: bytes = as_proto(traced(branch, (har,), ["har"], ["out"])).SerializeToString()
    return written


@pytest.mark.parametrize("target", ["rk3588", "rk3576"])
def test_source_branch_runs_on_the_npu_and_overflows_no_field(
    branch: Branch, har: Tensor, exported: bytes, converter_python: Path, tmp_path: Path, target: str
) -> None:
    model = ir.from_proto(onnx.load_from_string(exported))
    own = (rewrite_sines(form=Form.TRIANGLE, reach_pi=8.0, target=target),)
    for bound in (rewrite_interface_axes(), *preflight(target, own)):
        model = bound.rewrite(model).model
    build = built(model, {"har": har.numpy()[:, :, None]}, tmp_path, converter_python, target)
    lines = build.lines.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if "REGTASK" in line]
    table = parse_layer_table(lines)
    assert table is not None
    assert not [layer.name for layer in table.layers if layer.target == "CPU" and not layer.op.endswith("Operator")]
    wanted = original(branch, har).numpy()
    assert snr_db(wanted, np.asarray(build.simulated[0]["out"]).reshape(wanted.shape)) > 50
