"""The reference's design of Qwen3's streaming step (rknn-decoder-path, Qwen3): what ours is compared with; tests only.

    hidden [1, 512, B] or codes [1, 16, B], cos and sin [B, 64], mask [B, 71 + B], cache [1303424]
        -> audio [1, 1, 1920 B], cache_out [1303424]

Keys are cached turned, so the caller gives each step the rotary tables of its positions, and a mask of what it may
see. Every convolution is a valid one behind its tail in the cache; a transposed convolution computes kernel // stride
earlier inputs too and is cut. Only SnakeBeta's exponentials are folded. The weights are those of a
`models.qwen3.decoder.Decoder`, whose layers it uses; the order of its cache is the order of their use.
"""

from __future__ import annotations

import io
import warnings
from collections import Counter
from dataclasses import dataclass, field
from math import prod, sqrt

import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from models.qwen3.config import DecoderConfig
from models.qwen3.decoder import Decoder
from models.qwen3.layers import (
    SNAKE_EPSILON,
    CausalConv,
    CausalTransposedConv,
    ConvNeXt,
    ResidualUnit,
    SnakeBeta,
    WaveBlock,
)
from models.qwen3.transformer import TransformerLayer, rotary_tables, turned

HIDDEN, CODES = "hidden", "codes"
SEAMS = (HIDDEN, CODES)
TABLES = ("cos", "sin", "mask")
CACHE, OUTPUTS = "cache", ["audio", "cache_out"]

OPSET = 17
"""The reference's (family-facts)."""

UNSEEN = -1e4
"""Added to the scores of what is not seen; minus infinity is none of fp16's that the toolkit computes well with."""


@dataclass
class Tails:
    """Reads the flat cache from its start on, and collects the next one in the same order."""

    cache: Tensor
    read: int = 0
    written: list[Tensor] = field(default_factory=list)

    def join(self, shape: tuple[int, ...], x: Tensor, axis: int) -> Tensor:
        """X behind the next slice of `shape`; what is last of both, as much, goes into the next cache."""
        end = self.read + prod(shape)
        joined = torch.cat((self.cache[self.read : end].reshape(shape), x), dim=axis)
        self.read = end
        self.written.append(joined.narrow(axis, joined.shape[axis] - shape[axis], shape[axis]).reshape(-1))
        return joined

    def written_out(self) -> Tensor:
        return torch.cat(self.written)


class ReferenceStep(nn.Module):
    """One step of any number of codes."""

    def __init__(self, decoder: Decoder, seam: str = HIDDEN) -> None:
        super().__init__()
        self.decoder, self.seam, self.config = decoder, seam, decoder.config
        self.snakes = nn.ModuleDict({
            _key(name): FoldedSnake(m) for name, m in decoder.named_modules() if isinstance(m, SnakeBeta)
        })  # fmt: skip
        self._snake_of = {id(m): _key(name) for name, m in decoder.named_modules() if isinstance(m, SnakeBeta)}
        self.tables = nn.ModuleList(
            nn.Embedding(entries.shape[0], entries.shape[1], _weight=entries)
            for part in (decoder.quantizer.rvq_first, decoder.quantizer.rvq_rest)
            for entries in part.vq.entries()
        )

    def forward(self, given: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """See the module's docstring."""
        tails = Tails(cache)
        audio = self.walked(given, cos, sin, mask, tails)
        return audio, tails.written_out()

    def walked(self, given: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, tails: Tails) -> Tensor:
        """The audio; the caches are in `tails`."""
        decoder = self.decoder
        hidden = self._embedded(given) if self.seam == CODES else given
        x = _continued(decoder.pre_conv, hidden, tails)
        transformer = decoder.pre_transformer
        x = transformer.input_proj(x.transpose(1, 2))
        for layer in transformer.layers:
            assert isinstance(layer, TransformerLayer)
            x = _transformed(layer, x, cos, sin, mask, tails, self.config)
        x = transformer.output_proj(transformer.norm(x)).transpose(1, 2)
        for stage in decoder.upsample:
            assert isinstance(stage, nn.Sequential)
            up, block = stage
            assert isinstance(up, CausalTransposedConv)
            assert isinstance(block, ConvNeXt)
            x = _conv_next(block, _upsampled(up, x, tails), tails)
        for part in decoder.decoder:
            x = self._waved(part, x, tails)
        return torch.clamp(x, -1, 1)

    def _embedded(self, codes: Tensor) -> Tensor:
        """Codes [1, Q, B] -> [1, 512, B]: a lookup for each codebook."""
        rows = [table(row) for table, row in zip(self.tables, codes.unbind(1), strict=True)]
        first = self.decoder.quantizer.semantic
        parts = []
        for part, own in (
            (self.decoder.quantizer.rvq_first, rows[:first]),
            (self.decoder.quantizer.rvq_rest, rows[first:]),
        ):
            total = own[0]
            for row in own[1:]:
                total = total + row
            parts.append(part.output_proj(total.transpose(1, 2)))
        out: Tensor = parts[0] + parts[1]
        return out

    def _waved(self, part: nn.Module, x: Tensor, tails: Tails) -> Tensor:
        if isinstance(part, CausalConv):
            return _continued(part, x, tails)
        if isinstance(part, SnakeBeta):
            return self._snake(part, x)
        assert isinstance(part, WaveBlock)
        snake, up, *units = part.block
        assert isinstance(up, CausalTransposedConv)
        x = _upsampled(up, self._snake(snake, x), tails)
        for unit in units:
            assert isinstance(unit, ResidualUnit)
            inner = _continued(unit.conv1, self._snake(unit.act1, x), tails)
            x = unit.conv2.conv(self._snake(unit.act2, inner)) + x
        return x

    def _snake(self, snake: nn.Module, x: Tensor) -> Tensor:
        out: Tensor = self.snakes[self._snake_of[id(snake)]](x)
        return out


class FoldedSnake(nn.Module):
    """SnakeBeta with its exponentials taken."""

    scale: Tensor
    share: Tensor

    def __init__(self, snake: SnakeBeta) -> None:
        super().__init__()
        self.register_buffer("scale", snake.alpha.exp()[None, :, None])
        self.register_buffer("share", 1 / (snake.beta.exp() + SNAKE_EPSILON)[None, :, None])

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T]."""
        return x + self.share * torch.pow(torch.sin(x * self.scale), 2)


def _key(name: str) -> str:
    return name.replace(".", "_")


def _continued(layer: CausalConv, x: Tensor, tails: Tails) -> Tensor:
    out: Tensor = layer.conv(tails.join((1, x.shape[1], layer.history), x, 2))
    return out


def _upsampled(layer: CausalTransposedConv, x: Tensor, tails: Tails) -> Tensor:
    """Kernel // stride inputs more are computed in front, and cut off behind."""
    kernel, stride = layer.conv.kernel_size[0], layer.conv.stride[0]
    kept, count = kernel // stride, x.shape[-1]
    out: Tensor = layer.conv(tails.join((1, x.shape[1], kept), x, 2))
    return out[..., kept * stride : (kept + count) * stride]


def _conv_next(block: ConvNeXt, x: Tensor, tails: Tails) -> Tensor:
    inner = block.norm(_continued(block.dwconv, x, tails).permute(0, 2, 1))
    inner = block.pwconv2(functional.gelu(block.pwconv1(inner)))
    out: Tensor = x + (block.gamma * inner).permute(0, 2, 1)
    return out


def _transformed(
    layer: TransformerLayer, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, tails: Tails, config: DecoderConfig
) -> Tensor:
    """X [1, B, C]; keys and values [1, H, kv_len, D] in the cache, the keys turned."""
    attention, heads = layer.self_attn, (1, x.shape[1], config.num_attention_heads, config.head_dim)
    normed = layer.input_layernorm(x)
    query, key, value = (
        projection(normed).view(heads).transpose(1, 2)
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    query, key = (part * cos + turned(part) * sin for part in (query, key))
    kept = (1, config.num_attention_heads, config.kv_len, config.head_dim)
    key, value = (tails.join(kept, part, 2) for part in (key, value))
    scores = query @ key.transpose(2, 3) * (1 / sqrt(config.head_dim)) + mask
    mixed = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(1, x.shape[1], -1)
    x = x + layer.self_attn_layer_scale(attention.o_proj(mixed))
    mlp, normed = layer.mlp, layer.post_attention_layernorm(x)
    out: Tensor = x + layer.mlp_layer_scale(mlp.down_proj(functional.silu(mlp.gate_proj(normed)) * mlp.up_proj(normed)))
    return out


def tables_at(config: DecoderConfig, position: int, codes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cosines and sines [B, D] and the mask [B, kv_len + B] of the step whose first code is `position`."""
    cos, sin = rotary_tables(
        torch.arange(position, position + codes, dtype=torch.float64), config.head_dim, config.rope_theta
    )
    slots = torch.arange(-config.kv_len, codes)
    ago = torch.arange(codes)[:, None] - slots[None]
    seen = (ago >= 0) & (ago <= config.kv_len) & (slots + position >= 0)[None]
    return cos.float(), sin.float(), torch.where(seen, 0.0, UNSEEN)


def reference_numel_walked(config: DecoderConfig, codes: int = 3) -> int:
    """Numbers that a step reads of its cache, counted by a run without numbers."""
    with torch.device("meta"):
        step = ReferenceStep(Decoder(config))
        tails = Tails(torch.empty(10_000_000))  # more than any step reads
        shapes = shapes_of(config, codes, HIDDEN, 0)
        hidden, cos, sin, mask = (torch.empty(shapes[name]) for name in (HIDDEN, *TABLES))
        step.walked(hidden, cos, sin, mask, tails)
        assert sum(part.numel() for part in tails.written) == tails.read
    return tails.read


def shapes_of(config: DecoderConfig, codes: int, seam: str, numel: int) -> dict[str, tuple[int, ...]]:
    """The inputs of a step, by name, in order."""
    width = {HIDDEN: config.codebook_dim, CODES: config.num_quantizers}[seam]
    table = (codes, config.head_dim)
    mask = (codes, config.kv_len + codes)
    return {seam: (1, width, codes), "cos": table, "sin": table, "mask": mask, CACHE: (numel,)}


def exported(step: ReferenceStep, codes: int, numel: int) -> onnx.ModelProto:
    """The graph as torch's older exporter writes it, which is the reference's."""
    shapes = shapes_of(step.config, codes, step.seam, numel)
    dtypes = {CODES: torch.int64}
    feeds = tuple(torch.zeros(shape, dtype=dtypes.get(name, torch.float32)) for name, shape in shapes.items())
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # that this exporter is the older one
        torch.onnx.export(
            step.eval(),
            feeds,
            file,  # type: ignore[arg-type]  # this exporter writes to any file
            input_names=list(shapes),
            output_names=OUTPUTS,
            opset_version=OPSET,
            dynamo=False,
        )
    return onnx.load_from_string(file.getvalue())


def operators(model: onnx.ModelProto) -> Counter[str]:
    """Nodes by operator, without constants."""
    return Counter(node.op_type for node in model.graph.node if node.op_type != "Constant")
