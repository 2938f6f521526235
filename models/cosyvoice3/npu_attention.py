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


class FirstHead(nn.Module):
    """Query, key and value of the head that is turned.

    A rotation is linear: q turned is q cos + q' sin, and q', neighbours swapped and one negated, has rows of q's own
    weights. All five (q, q', k, k', v) come out of one convolution, are multiplied by a table, and are added up by
    another one of zeros and ones, which is exact.
    """

    table: Tensor

    def __init__(self, attention: Attention, angles: Tensor) -> None:
        super().__init__()
        self.width = width = attention.head_dim
        query, key, value = (
            torch.cat((layer.weight[:width], layer.bias[:width, None]), dim=1)
            for layer in (attention.to_q, attention.to_k, attention.to_v)
        )
        rows = torch.cat((query, turned(query.t()).t(), key, turned(key.t()).t(), value))
        self.parts = pointwise(rows[:, :-1].contiguous(), rows[:, -1].contiguous())
        cos, sin = angles.cos().t(), angles.sin().t()
        table = torch.cat((cos, sin, cos, sin, torch.ones_like(cos)))
        self.register_buffer("table", table[None, :, None].contiguous())
        once, none = torch.eye(width), torch.zeros(width, width)
        sums = ((once, once, none, none, none), (none, none, once, once, none), (none, none, none, none, once))
        self.sums = pointwise(torch.cat([torch.cat(row, dim=1) for row in sums]), None)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """X [2, C, 1, T] to three of [2, head_dim, 1, T]."""
        return self.sums(self.parts(x) * self.table).split(self.width, dim=1)  # type: ignore[no-any-return]


class NpuAttention(nn.Module):
    """What `attention` gives of real frames; `angles` [T, head_dim] are those of each frame."""

    def __init__(self, attention: Attention, angles: Tensor) -> None:
        super().__init__()
        width = attention.head_dim
        self.head_dim, self.others = width, attention.heads - 1
        self.first = FirstHead(attention, angles)
        self.query, self.key, self.value = (
            pointwise(layer.weight[width:], layer.bias[width:])
            for layer in (attention.to_q, attention.to_k, attention.to_v)
        )
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
        first = mixed([part.squeeze(2) for part in self.first(x)], bias)
        others = mixed([layer(x).reshape(by_head) for layer in (self.query, self.key, self.value)], biases)
        together = others.reshape(PAIR, self.others * self.head_dim, 1, x.shape[3])
        out: Tensor = self.out(together) + self.first_out(first[:, :, None])
        return out


def mixed(parts: Sequence[Tensor], bias: Tensor) -> Tensor:
    """Attention of query, key and value, each [heads, D, T]; written so, the compiler makes one layer of it."""
    query, key, value = parts
    query = query / sqrt(query.shape[1])
    return value @ torch.softmax(query.transpose(1, 2) @ key + bias, dim=-1).transpose(1, 2)
