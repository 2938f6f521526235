"""Layers of a streaming step in the forms that cost an NPU least: signals are [1, C, 1, T], time last.

Linear layers are convolutions of one tap. What a checkpoint has beside them, norm weights, layer scales, gammas,
exponentials, is folded into them in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.npu_layers import convolution, gelu, pointwise
from models.qwen3.layers import CausalConv, ConvNeXt
from models.qwen3.transformer import RmsNorm, TransformerLayer, rotary_tables


def behind_norm(layer: nn.Linear, norm: RmsNorm, factor: float = 1.0) -> nn.Conv2d:
    """`layer` of what the norm gives, times `factor`, as a layer of what it gives without its weight."""
    return pointwise(layer.weight.double() * norm.weight.double() * factor, layer.bias)


def scaled(layer: nn.Linear, scale: Tensor) -> nn.Conv2d:
    """`layer`, its outputs times `scale`."""
    bias = layer.bias.double() * scale.double() if layer.bias is not None else None
    return pointwise(layer.weight.double() * scale.double()[:, None], bias)


def rms_normed(x: Tensor, epsilon: float) -> Tensor:
    """X [1, C, 1, T] over the root of its mean square, for each step.

    As a layer normalisation of x beside -x, whose mean is 0: one layer of the NPU (exNorm), right for any size that
    fp16 holds, where a mean of squares leaves fp16 from |x| = 256 on.
    """
    both = torch.cat((x, -x), dim=1).permute(0, 2, 3, 1)
    normed = functional.layer_norm(both, both.shape[-1:], None, None, epsilon).permute(0, 3, 1, 2)
    return normed[:, : x.shape[1]]


class Rotation(nn.Module):
    """Turns [heads, D, 1, S] by the angles of `slots`, a rotary embedding.

    The halves change places in a convolution of zeros and ones, behind the product with the sine: it takes the sum in
    (ConvAdd), and is exact.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, slots: range, head_dim: int, theta: float) -> None:
        super().__init__()
        cos, sin = rotary_tables(torch.tensor(list(slots), dtype=torch.float64), head_dim, theta)
        half = head_dim // 2
        # What comes out first is -sin times what was last: sin stands where its factor is before the exchange.
        sin = torch.cat((sin[:, half:], -sin[:, :half]), dim=1)
        self.register_buffer("cos", cos.float().t()[None, :, None].contiguous())
        self.register_buffer("sin", sin.float().t()[None, :, None].contiguous())
        order = torch.cat((torch.arange(half, head_dim), torch.arange(half)))
        self.exchange = pointwise(torch.eye(head_dim)[order], None)

    def forward(self, x: Tensor) -> Tensor:
        """X [heads, D, 1, S]."""
        out: Tensor = self.exchange(x * self.sin) + x * self.cos
        return out


class StepTransformer(nn.Module):
    """A transformer layer of B new codes behind the cached ones."""

    def __init__(self, layer: TransformerLayer, epsilon: float) -> None:
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp
        self.heads, self.head_dim, self.epsilon = attention.heads, attention.head_dim, epsilon
        self.query = behind_norm(attention.q_proj, layer.input_layernorm, 1 / sqrt(attention.head_dim))
        self.key = behind_norm(attention.k_proj, layer.input_layernorm)
        self.value = behind_norm(attention.v_proj, layer.input_layernorm)
        self.out = scaled(attention.o_proj, layer.self_attn_layer_scale.scale)
        self.gate = behind_norm(mlp.gate_proj, layer.post_attention_layernorm)
        self.up = behind_norm(mlp.up_proj, layer.post_attention_layernorm)
        self.down = scaled(mlp.down_proj, layer.mlp_layer_scale.scale)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor, turns: Sequence[Rotation]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One layer.

        Args:
            x: [1, C, 1, B].
            keys: of the cached codes, not yet turned, [heads D / W, W, 1, kept] for some W.
            values: the same.
            mask: what is added to the scores, [B, kept + B].
            turns: of the queries and of the keys.

        Returns:
            x, and the next keys and values, [heads, D, 1, kept].
        """
        kept, normed = keys.shape[3], rms_normed(x, self.epsilon)
        keys = torch.cat((self._by_head(keys), self._by_head(self.key(normed))), dim=3)
        values = torch.cat((self._by_head(values), self._by_head(self.value(normed))), dim=3)
        query = turns[0](self._by_head(self.query(normed)))[:, :, 0]
        scores = query.transpose(1, 2) @ turns[1](keys)[:, :, 0] + mask
        mixed = values[:, :, 0] @ torch.softmax(scores, dim=-1).transpose(1, 2)
        x = x + self.out(mixed.reshape(1, self.heads * self.head_dim, 1, x.shape[3]))
        normed = rms_normed(x, self.epsilon)
        x = x + self.down(functional.silu(self.gate(normed)) * self.up(normed))
        return x, keys[..., -kept:], values[..., -kept:]

    def _by_head(self, x: Tensor) -> Tensor:
        by_head = (self.heads, self.head_dim, 1, x.shape[3])
        return x if x.shape == by_head else x.reshape(by_head)


class StepConvNeXt(nn.Module):
    """A ConvNeXt block, of an input that has its past in front."""

    def __init__(self, block: ConvNeXt) -> None:
        super().__init__()
        conv = block.dwconv.conv
        self.depthwise = convolution(conv.weight, conv.bias, groups=conv.groups)
        self.norm = block.norm
        self.first = pointwise(block.pwconv1.weight, block.pwconv1.bias)
        self.second = scaled(block.pwconv2, block.gamma)

    def forward(self, x: Tensor, joined: Tensor) -> Tensor:
        """X [1, C, 1, T], the same behind its tail [1, C, 1, 6 + T]."""
        inner = self.norm(self.depthwise(joined).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        out: Tensor = x + self.second(gelu(self.first(inner)))
        return out


def step_convolution(layer: CausalConv) -> nn.Conv2d:
    """A causal convolution, of what has its past in front."""
    conv = layer.conv
    return convolution(conv.weight, conv.bias, int(conv.dilation[0]), conv.groups)
