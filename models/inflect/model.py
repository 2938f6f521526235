"""A whole Inflect model, under a checkpoint's names; inference only."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.inflect.config import InflectConfig
from models.inflect.durations import DurationPredictor, alignment, expanded, frames_of
from models.inflect.flow import ReverseFlow
from models.inflect.generator import Generator
from models.inflect.text_encoder import TextEncoder
from models.inflect.weights import Weights, checked, folded


class Inflect(nn.Module):
    """Text encoder, durations, flow and generator. C latent channels (`inter_channels`), T tokens, N frames."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        self.config = config
        self.enc_p = TextEncoder(config)
        self.dp = DurationPredictor(config)
        self.flow = ReverseFlow(config)
        self.dec = Generator(config)

    def prior(self, tokens: Tensor, lengths: Tensor, length_scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is said, frame by frame.

        Args:
            tokens: int64 [1, T].
            lengths: int64 [1], tokens that are no padding.
            length_scale: a scalar that all durations are multiplied with.

        Returns:
            Mean and logarithm of the deviation, [1, C, N], and the frame mask [1, 1, N].
        """
        x, mean, log_deviation, mask = self.enc_p(tokens, lengths)
        path, frame_mask = alignment(frames_of(self.dp(x, mask), mask, length_scale), mask)
        return expanded(mean, path), expanded(log_deviation, path), frame_mask

    def voiced(self, z: Tensor, mask: Tensor) -> Tensor:
        """The part behind the seam: a sample of the prior z [1, C, N] and its mask [1, 1, N] to [1, 1, hop N]."""
        out: Tensor = self.dec(self.flow(z, mask) * mask)
        return out


def load(weights: Weights, config: InflectConfig, where: str) -> Inflect:
    """The model of a checkpoint's weights, all of them and no others; it shares their memory where nothing is folded.

    Args:
        weights: the state dict, float32, its weight norm folded or not.
        config: the sizes.
        where: names the file in messages.

    Raises:
        Refusal: the weights are not those of such a model; the tensor is named.
    """
    with torch.device("meta"):
        made = Inflect(config)
    arrays = checked(folded(weights, where), config, where)
    state = {name: torch.from_numpy(array if array.flags.writeable else array.copy()) for name, array in arrays.items()}
    made.load_state_dict(state, strict=True, assign=True)
    return made.requires_grad_(False).eval()
