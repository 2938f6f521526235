"""The normalizing flow, run in reverse: a sample of the prior to the generator's latent, inference only.

Each coupling leaves half of the channels and shifts the others by what a small WaveNet makes of those; between them
the channels are flipped. It only shifts ("mean only"), and nothing conditions it, so VITS multiplies by exp(-0) and
adds zeros: these stay, for they are in the graphs that Inflect's authors published (24 `ConstantOfShape`).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.inflect.config import FLOW_KERNEL, FLOW_LAYERS, FLOW_STEPS, InflectConfig
from models.inflect.layers import conv


class WaveNet(nn.Module):
    """Gated convolutions: what each passes on is added to its stream, and what it puts out to the sum."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        outs = [2 * hidden] * (FLOW_LAYERS - 1) + [hidden]  # the last passes nothing on
        self.in_layers = nn.ModuleList(conv(hidden, 2 * hidden, FLOW_KERNEL) for _ in outs)
        self.res_skip_layers = nn.ModuleList(conv(hidden, out, 1) for out in outs)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """X [1, H, N], mask [1, 1, N] -> [1, H, N]."""
        hidden = self.hidden
        output = torch.zeros_like(x)
        for entry, leave in zip(self.in_layers, self.res_skip_layers, strict=True):
            entering = entry(x)
            entering = entering + torch.zeros_like(entering)
            leaving = leave(torch.tanh(entering[:, :hidden]) * torch.sigmoid(entering[:, hidden:]))
            if leave is not self.res_skip_layers[-1]:
                x = (x + leaving[:, :hidden]) * mask
                leaving = leaving[:, hidden:]
            output = output + leaving
        return output * mask


class Coupling(nn.Module):
    """One step of the flow."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        self.sides = [config.half_channels] * 2
        self.pre = conv(config.half_channels, config.hidden_channels, 1)
        self.enc = WaveNet(config.hidden_channels)
        self.post = conv(config.hidden_channels, config.half_channels, 1)

    def shift(self, kept: Tensor, mask: Tensor) -> Tensor:
        """What the other half is shifted by: kept [1, C / 2, N], mask [1, 1, N] -> [1, C / 2, N]."""
        inner = self.enc(self.pre(kept) * mask, mask)
        out: Tensor = self.post(inner) * mask
        return out

    def forward(self, z: Tensor, mask: Tensor) -> Tensor:
        """In reverse: z [1, C, N], mask [1, 1, N] -> [1, C, N]."""
        kept, moved = torch.split(z, self.sides, dim=1)
        shift = self.shift(kept, mask)
        unscaled = torch.zeros_like(shift)
        return torch.cat([kept, (moved - shift) * torch.exp(-unscaled) * mask], dim=1)


class Flip(nn.Module):
    """The channels in reverse order."""

    def forward(self, z: Tensor, mask: Tensor) -> Tensor:
        """Z [1, C, N]; the mask is not used."""
        return torch.flip(z, [1])


class ReverseFlow(nn.Module):
    """Couplings and flips, from the last to the first; `flow` of a checkpoint."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        self.flows = nn.ModuleList()
        for _ in range(FLOW_STEPS):
            self.flows.extend([Coupling(config), Flip()])

    def forward(self, z: Tensor, mask: Tensor) -> Tensor:
        """Z [1, C, N], mask [1, 1, N] -> [1, C, N]."""
        for flow in reversed(self.flows):
            z = flow(z, mask)
        return z
