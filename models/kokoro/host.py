"""All of Kokoro before the generator: tokens and a voice's style to the three inputs of its seam; inference.

    tokens -> ALBERT -> duration encoder -> durations, pitch, energy
    tokens -> text encoder -> aligned by the durations -> latent decoder -> x
    pitch -> harmonic source -> STFT -> har

F frames are aligned (the sum of the durations); the seam has N = 2 F.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.harmonic_source import Source
from models.kokoro.albert import Albert
from models.kokoro.config import KokoroConfig
from models.kokoro.generator_weights import under
from models.kokoro.latent_decoder import LatentDecoder
from models.kokoro.layers import Arrays, Linear
from models.kokoro.prosody import Prosody
from models.kokoro.text_encoder import TextEncoder
from models.stft import Stft
from models.weight_norm import folded


class Seam(NamedTuple):
    """What the generator takes, and the durations it came of."""

    x: Tensor
    """[1, 512, N]"""

    har: Tensor
    """[1, 2 bins, 60 N + 1]"""

    style: Tensor
    """[1, S]"""

    durations: Tensor
    """int64 [1, T], frames; their sum is N / 2"""


class Host(nn.Module):
    """`checkpoint`: a whole one's arrays by their official names; its generator is not used but for the source."""

    def __init__(self, checkpoint: Arrays, config: KokoroConfig) -> None:
        super().__init__()
        generator = "decoder.module.generator"
        source = f"{generator}.m_source"
        kept = {k: v for k, v in checkpoint.items() if k.startswith(source) or not k.startswith(generator)}
        weights = folded(kept)
        self.bert = Albert(under(weights, "bert.module"), config.plbert)
        self.narrow = Linear(under(weights, "bert_encoder.module"))
        self.prosody = Prosody(under(weights, "predictor.module"), config.n_layer)
        self.text_encoder = TextEncoder(under(weights, "text_encoder.module"), config.n_layer)
        self.decoder = LatentDecoder(under(weights, "decoder.module"))
        merge = under(weights, f"{source}.l_linear")
        self.source = Source(merge["weight"], merge["bias"], config.istftnet.hop)
        self.stft = Stft(config.istftnet.gen_istft_n_fft, config.istftnet.gen_istft_hop_size)
        self.style_dim = config.style_dim

    def forward(self, tokens: Tensor, voice_style: Tensor, speed: Tensor, noise: Tensor) -> Seam:
        """The seam's tensors.

        Args:
            tokens: int64 [1, T], with the 0 before and behind.
            voice_style: [1, 2 S]: the decoder's half, then the prosody's.
            speed: [1]; 1.0 is the voice's own.
            noise: [1, hop N or more, H], standard normal.
        """
        style, manner = voice_style[:, : self.style_dim], voice_style[:, self.style_dim :]
        encoded = self.prosody.encoder(self.narrow(self.bert(tokens)), manner)
        durations = self.prosody.durations(encoded, speed)
        frames = token_of_frame(durations)
        pitch, energy = self.prosody.curves(encoded[:, frames], manner)
        x = self.decoder(self.text_encoder(tokens)[:, :, frames], pitch, energy, style)
        har = self.stft(self.source(pitch, noise))
        return Seam(x, har, style, durations)


def token_of_frame(durations: Tensor) -> Tensor:
    """Durations int64 [1, T] -> int64 [F]: for each frame, which token it speaks."""
    ends = durations[0].cumsum(0)
    frames = torch.arange(ends[-1])  # type: ignore[call-overload]  # a tensor, so that an export sees where it is from
    spoken: Tensor = (frames.unsqueeze(1) >= ends.unsqueeze(0)).long().sum(1)
    return spoken
