"""A streaming step of the flow encoder in the form for an NPU: a chunk of tokens and what is remembered, in and out.

Signals are [1, C, 1, T], time last, and linear layers convolutions of one tap. What a checkpoint has as factors is
folded into weights in double precision: the root of the width behind an embedding, and the root of a head's size.

The mask tells which tokens are real. What is not real is zero in front of the look-ahead convolution, as where the
original has nothing, and no query sees it as a key: so a stream's end, and a step that is given fewer tokens ahead, are
computed as the original does.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import onnx_ir as ir
import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice2.encoder import Attention, Block, Embedding, Encoder
from models.cosyvoice2.encoder_config import BEHIND, STACKS, UP_BEHIND, UPSAMPLING
from models.cosyvoice2.encoder_positions import DistanceScores
from models.cosyvoice2.encoder_states import AHEAD, UP, VALID, StepSizes, input_shapes, kept_of, output_shapes
from models.npu_layers import MASKED, channel_norm, convolution, pointwise
from models.tracing import traced


class StepEmbedding(nn.Module):
    """Linear and norm, the factor behind them in the norm's weights."""

    def __init__(self, embedding: Embedding) -> None:
        super().__init__()
        linear, norm = embedding.out
        assert isinstance(linear, nn.Linear)
        assert isinstance(norm, nn.LayerNorm)
        self.linear = pointwise(linear.weight, linear.bias)
        self.norm = StepNorm(norm, sqrt(linear.out_features))

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, 1, T]."""
        out: Tensor = self.norm(self.linear(x))
        return out


class StepNorm(nn.Module):
    """A norm over channels, times `factor`."""

    weight: Tensor
    bias: Tensor

    def __init__(self, norm: nn.LayerNorm, factor: float = 1.0) -> None:
        super().__init__()
        self.epsilon = norm.eps
        self.register_buffer("weight", (norm.weight.double() * factor).float())
        self.register_buffer("bias", (norm.bias.double() * factor).float())

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, 1, T]."""
        return channel_norm(x, self.weight, self.bias, self.epsilon)


class StepAttention(nn.Module):
    """Attention of T new steps behind the remembered ones."""

    bias_u: Tensor
    bias_v: Tensor

    def __init__(self, attention: Attention, queries: int, keys: int) -> None:
        super().__init__()
        self.heads, self.head_dim, self.queries = attention.heads, attention.head_dim, queries
        factor = 1 / sqrt(self.head_dim)
        query = attention.linear_q
        self.query = pointwise(query.weight.double() * factor, query.bias.double() * factor)
        self.key = _as_convolution(attention.linear_k)
        self.value = _as_convolution(attention.linear_v)
        self.out = _as_convolution(attention.linear_out)
        self.register_buffer("bias_u", (attention.pos_bias_u.double() * factor).float()[:, :, None, None])
        self.register_buffer("bias_v", (attention.pos_bias_v.double() * factor).float()[:, :, None, None])
        self.distances = DistanceScores(attention.linear_pos.weight, self.heads, queries, keys)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One attention.

        Args:
            x: [1, C, 1, T].
            keys, values: remembered, [heads, D, 1, S].
            mask: what is added to the scores of the keys, [1, 1, S].

        Returns:
            [1, C, 1, T], and the keys and values to be remembered.
        """
        keys = torch.cat((keys[..., self.queries :], self._by_head(self.key(x))), dim=3)
        values = torch.cat((values[..., self.queries :], self._by_head(self.value(x))), dim=3)
        query = self._by_head(self.query(x))
        by_content = (query + self.bias_u).squeeze(2).transpose(1, 2) @ keys.squeeze(2)
        by_distance = self.distances((query + self.bias_v).squeeze(2).transpose(1, 2))
        weights = torch.softmax(by_content + (by_distance + mask), dim=-1)
        mixed = values.squeeze(2) @ weights.transpose(1, 2)
        return self.out(mixed.reshape(1, self.heads * self.head_dim, 1, self.queries)), keys, values

    def _by_head(self, x: Tensor) -> Tensor:
        return x.reshape(self.heads, self.head_dim, 1, self.queries)


class StepBlock(nn.Module):
    """A block of T new steps."""

    def __init__(self, block: Block, queries: int, keys: int) -> None:
        super().__init__()
        self.attention = StepAttention(block.self_attn, queries, keys)
        self.norm_attention, self.norm_forward = StepNorm(block.norm_mha), StepNorm(block.norm_ff)
        inner = block.feed_forward
        self.first, self.second = _as_convolution(inner.w_1), _as_convolution(inner.w_2)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `StepAttention`."""
        mixed, keys, values = self.attention(self.norm_attention(x), keys, values, mask)
        x = x + mixed
        return x + self.second(functional.silu(self.first(self.norm_forward(x)))), keys, values


class Step(nn.Module):
    """A step of these sizes. Inputs and outputs are those of `encoder_states`, in their order."""

    unseen: Tensor

    def __init__(self, encoder: Encoder, sizes: StepSizes) -> None:
        super().__init__()
        self.config, self.sizes = encoder.config, sizes
        parts = encoder.encoder
        ahead = parts.pre_lookahead_layer
        missing = encoder.config.look_ahead - sizes.look_ahead
        self.register_buffer("unseen", torch.zeros(1, encoder.config.width, 1, missing))
        self.embed, self.up_embed = StepEmbedding(parts.embed), StepEmbedding(parts.up_embed)
        self.conv1, self.conv2 = _as_convolution(ahead.conv1), _as_convolution(ahead.conv2)
        self.up_conv = _as_convolution(parts.up_layer.conv)
        self.stacks = nn.ModuleDict()
        for stack, blocks, factor in zip(STACKS, (parts.encoders, parts.up_encoders), (1, UPSAMPLING), strict=True):
            queries, keys = factor * sizes.chunk, factor * sizes.history
            self.stacks[stack] = nn.ModuleList(_step_blocks(blocks, queries, keys))
        self.norm = StepNorm(parts.after_norm)
        self.projection = _as_convolution(encoder.encoder_proj)

    def forward(self, embedded: Tensor, mask: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        """One step; see `encoder_states` for shapes."""
        sizes, given = self.sizes, dict(zip(list(input_shapes(self.config, self.sizes))[2:], states, strict=True))
        valid = torch.cat((given[VALID][..., sizes.chunk :], mask[..., : sizes.chunk]), dim=3)
        kept = {VALID: valid}
        x = self._ahead(self.embed(embedded) * mask, given, kept)
        x = self._blocks(STACKS[0], x, valid, given, kept)
        twice = torch.cat((given[UP], _twice(x)), dim=3)
        kept[UP] = twice[..., -UP_BEHIND:]
        x = self._blocks(STACKS[1], self.up_embed(self.up_conv(twice)), _twice(valid), given, kept)
        mean = self.projection(self.norm(x))
        return (mean, *(kept[name] for name in given))

    def _ahead(self, x: Tensor, given: dict[str, Tensor], kept: dict[str, Tensor]) -> Tensor:
        seen = torch.cat((x, self.unseen), dim=3) if self.unseen.numel() else x
        joined = torch.cat((given[AHEAD], functional.leaky_relu(self.conv1(seen))), dim=3)
        kept[AHEAD] = joined[..., -BEHIND:]
        out: Tensor = x[..., : self.sizes.chunk] + self.conv2(joined)
        return out

    def _blocks(
        self, stack: str, x: Tensor, valid: Tensor, given: dict[str, Tensor], kept: dict[str, Tensor]
    ) -> Tensor:
        mask = ((1.0 - valid) * MASKED).squeeze(0)
        blocks = self.stacks[stack]
        assert isinstance(blocks, nn.ModuleList)
        for number, block in enumerate(blocks):
            keys, values = kept_of(stack, number)
            x, kept[keys], kept[values] = block(x, given[keys], given[values], mask)
        return x


def _twice(x: Tensor) -> Tensor:
    """[1, C, 1, T], each step twice."""
    return functional.interpolate(x, scale_factor=(1.0, float(UPSAMPLING)), mode="nearest")


def _step_blocks(blocks: nn.ModuleList, queries: int, keys: int) -> Iterator[StepBlock]:
    for block in blocks:
        assert isinstance(block, Block)
        yield StepBlock(block, queries, keys)


def _as_convolution(layer: nn.Linear | nn.Conv1d) -> nn.Conv2d:
    """A linear layer, or a convolution over time, of [1, C, 1, T] that has its past in front."""
    weight = layer.weight
    return pointwise(weight, layer.bias) if isinstance(layer, nn.Linear) else convolution(weight, layer.bias)


def step_graph(step: Step) -> ir.Model:
    """A step as an ONNX graph."""
    shapes = input_shapes(step.config, step.sizes)
    example = tuple(torch.zeros(shape) for shape in shapes.values())
    return traced(step, example, list(shapes), list(output_shapes(step.config, step.sizes)))
