"""How many frames each token lasts, and the statistics repeated so; inference only."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.inflect.config import DURATION_CHANNELS, DURATION_KERNEL, InflectConfig
from models.inflect.layers import ChannelNorm, conv, length_mask


class DurationPredictor(nn.Module):
    """VITS's deterministic one; `dp` of a checkpoint."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        self.conv_1 = conv(config.hidden_channels, DURATION_CHANNELS, DURATION_KERNEL)
        self.norm_1 = ChannelNorm(DURATION_CHANNELS)
        self.conv_2 = conv(DURATION_CHANNELS, DURATION_CHANNELS, DURATION_KERNEL)
        self.norm_2 = ChannelNorm(DURATION_CHANNELS)
        self.proj = conv(DURATION_CHANNELS, 1, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """X [1, H, T], mask [1, 1, T] -> logarithms of the frames [1, 1, T]."""
        x = self.norm_1(torch.relu(self.conv_1(x * mask)))
        x = self.norm_2(torch.relu(self.conv_2(x * mask)))
        out: Tensor = self.proj(x * mask) * mask
        return out


def frames_of(logs: Tensor, mask: Tensor, length_scale: Tensor) -> Tensor:
    """Whole frames of each token, [1, 1, T]: rounded up, so at least one; none for padding.

    Args:
        logs: logarithms of the frames, [1, 1, T].
        mask: of the tokens, [1, 1, T].
        length_scale: what all durations are multiplied with, a scalar; 2 speaks half as fast.
    """
    return torch.ceil(torch.exp(logs) * mask * length_scale)


def alignment(frames: Tensor, token_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Which token each frame belongs to.

    Args:
        frames: of each token, [1, 1, T], whole.
        token_mask: [1, 1, T].

    Returns:
        path [1, N, T], 1 where a frame is a token's, and the frame mask [1, 1, N], all ones. N is the sum of the
        frames, and 1 where there are none.
    """
    total = torch.clamp_min(frames.sum(dim=(1, 2)), 1).long()
    frame_mask = length_mask(total, total.max())
    ends = torch.cumsum(frames, dim=-1)
    places = torch.arange(frame_mask.shape[2], device=frames.device)[None, :, None]
    path = ((places < ends) & (places >= ends - frames)).float() * token_mask
    return path, frame_mask


def expanded(statistics: Tensor, path: Tensor) -> Tensor:
    """Statistics [1, C, T] of tokens as those of frames, [1, C, N], by `path` [1, N, T]."""
    return torch.matmul(path, statistics.transpose(1, 2)).transpose(1, 2)
