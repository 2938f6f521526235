"""Self-attention by an NPU over signals [2, C, 1, T]: one fused layer for the first head, and one for all others.

Only the first head is turned by its frame's place. It is computed apart, so that nothing of the others is moved about.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor, nn

from models.cosyvoice3.config import PAIR
from models.cosyvoice3.dit import Attention, turned
from models.npu_layers import pointwise


class Rotation(nn.Module):
    """Turns query and key of a frame by its place, and leaves the value: one for all blocks.

    A rotation is x cos + x' sin, x' being x with neighbours swapped and one of them negated: a convolution of zeros and
    ones, which is exact. It stands behind the product with the sine, which neighbours share, and takes the sum in.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, angles: Tensor) -> None:
        super().__init__()
        cos, sin = angles.cos().t(), angles.sin().t()
        still, none = torch.ones_like(cos), torch.zeros_like(sin)
        self.register_buffer("cos", torch.cat((cos, cos, still))[None, :, None].contiguous())
        self.register_buffer("sin", torch.cat((sin, sin, none))[None, :, None].contiguous())
        width = angles.shape[1]
        exchange = torch.zeros(3, width, 3, width)
        for part in range(2):  # query and key
            exchange[part, :, part] = turned(torch.eye(width)).t()
        self.exchange = pointwise(exchange.reshape(3 * width, 3 * width), None)

    def forward(self, x: Tensor) -> Tensor:
        """Query, key and value [2, 3 head_dim, 1, T], in this order."""
        out: Tensor = self.exchange(x * self.sin) + x * self.cos
        return out


class NpuAttention(nn.Module):
    """What `attention` gives of real frames, which `rotation` turns."""

    def __init__(self, attention: Attention, rotation: Rotation) -> None:
        super().__init__()
        width = attention.head_dim
        self.head_dim, self.others = width, attention.heads - 1
        layers = (attention.to_q, attention.to_k, attention.to_v)
        self.rotation = rotation
        self.first = pointwise(
            torch.cat([layer.weight[:width] for layer in layers]), torch.cat([layer.bias[:width] for layer in layers])
        )
        self.query, self.key, self.value = (pointwise(layer.weight[width:], layer.bias[width:]) for layer in layers)
        out = attention.out
        self.first_out = pointwise(out.weight[:, :width], None)
        self.out = pointwise(out.weight[:, width:], out.bias)

    def forward(self, x: Tensor, bias: Tensor, biases: Tensor) -> Tensor:
        """One layer.

        Args:
            x: [2, C, 1, T].
            bias: what is added to the scores of each frame for the first head, [2, 1, T].
            biases: the same for the others, row by row, [2 (heads - 1), 1, T].
        """
        by_head = (PAIR * self.others, self.head_dim, x.shape[3])
        turned_parts = self.rotation(self.first(x)).split(self.head_dim, dim=1)
        first = mixed([part.squeeze(2) for part in turned_parts], bias)
        others = mixed([layer(x).reshape(by_head) for layer in (self.query, self.key, self.value)], biases)
        together = others.reshape(PAIR, self.others * self.head_dim, 1, x.shape[3])
        out: Tensor = self.out(together) + self.first_out(first[:, :, None])
        return out


def mixed(parts: Sequence[Tensor], bias: Tensor) -> Tensor:
    """Attention of query, key and value, each [heads, D, T]; written so, the compiler makes one layer of it."""
    query, key, value = parts
    query = query / sqrt(query.shape[1])
    return value @ torch.softmax(query.transpose(1, 2) @ key + bias, dim=-1).transpose(1, 2)
