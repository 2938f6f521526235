"""One streaming step of Qwen3's speech decoder: B codes and a cache in, their audio and the next cache out.

    hidden [1, 512, B], cache [numel]  ->  audio [1, 1, 1920 B], cache_out [numel]

Steps in a row give what the whole decode gives (`models.qwen3.decoder`), from a cache of zeros on. The arithmetic is
the reference's, in another order where that costs an NPU less:

- Keys are cached as they are and turned by their slot: attention sees differences of positions only, so the tables are
  constants, and no counter or table is an input.
- Which cached codes are real is a slice of the cache; the additive mask follows from it.
- Norm weights, layer scales, ConvNeXt's gamma and SnakeBeta's exponentials are folded, in double precision.
- Behind the first wave block nothing is cached but its last outputs. The frames of a step are decoded twice: the first
  few of them behind those outputs (`head`), all of them behind zeros (`body`), which is wrong for those few and right
  for the rest. So no long signal is ever joined with a tail. Where there is no earlier code, every convolution of the
  head must see zeros, as in the whole decode: its inputs are multiplied by what the cache says is valid.
"""

from __future__ import annotations

import copy
from math import prod, sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from contracts.contract import Cache
from models.qwen3.cache import SPARE, VALID, WAVE
from models.qwen3.decoder import Decoder
from models.qwen3.layers import SNAKE_EPSILON, CausalConv, ConvNeXt, SnakeBeta, WaveBlock
from models.qwen3.quantizer import JoinedTable, Quantizer
from models.qwen3.transformer import RmsNorm, TransformerLayer, rotary_tables, turned

MASKED = -1e4
"""Added to the score of what is not seen: e^-10000 is 0 in every float, and the number fits into fp16."""

State = dict[str, Tensor]


class Step(nn.Module):
    """A step of a fixed number of codes, from the seam."""

    def __init__(self, decoder: Decoder, layout: Cache, codes: int) -> None:
        super().__init__()
        config = decoder.config
        self.layout, self.codes, self.config = layout, codes, config
        transformer, wave = decoder.pre_transformer, list(decoder.decoder)
        self.pre_conv = decoder.pre_conv
        self.input_proj = transformer.input_proj
        self.layers = nn.ModuleList(StepLayer(layer, config.rms_norm_eps) for layer in transformer.layers)
        self.output_proj = _behind_norm(transformer.output_proj, transformer.norm)
        self.epsilon = config.rms_norm_eps
        self.upsample = nn.ModuleList(nn.ModuleList([stage[0], StepConvNeXt(stage[1])]) for stage in decoder.upsample)
        self.first_conv, self.first_block = wave[0], _folded_snakes(wave[1])
        self.rest = _folded_snakes(nn.ModuleList(wave[2:]))
        self.tables = Tables(config.kv_len, codes, config.head_dim, config.rope_theta)

    def forward(self, hidden: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden [1, 512, B], cache [numel] -> audio [1, 1, 1920 B], cache_out [numel]."""
        old = unpacked(cache, self.layout)
        new: State = {}
        valid = old[VALID]
        new[VALID] = torch.cat((valid, torch.ones(self.codes, dtype=valid.dtype)))[-self.config.kv_len :]
        x = self._latent(hidden, old, new)
        for number, (up, block) in enumerate(self.upsample):
            x = up(x)
            x = block(x, _continued(block.dwconv, x, f"upsample.{number}", old, new))
        x = _valid_conv(self.first_conv, _continued(self.first_conv, x, "decoder.0", old, new))
        x = self._first_block(x, old, new)
        new[WAVE] = torch.cat((old[WAVE][None], x), dim=-1)[..., -old[WAVE].shape[-1] :]
        return self._waves(x, old[WAVE][None], valid[-1:]).clamp(-1, 1), packed(new, self.layout, cache)

    def _latent(self, hidden: Tensor, old: State, new: State) -> Tensor:
        """Up to and with the transformer: [1, latent_dim, B]."""
        joined = _continued(self.pre_conv, hidden, "pre_conv", old, new)
        x = self.input_proj(_valid_conv(self.pre_conv, joined).transpose(1, 2))
        mask = self.tables.mask(old[VALID])
        for number, layer in enumerate(self.layers):
            x = layer(x, f"layers.{number}", old, new, self.tables, mask)
        out: Tensor = self.output_proj(_normed(x, self.epsilon)).transpose(1, 2)
        return out

    def _first_block(self, x: Tensor, old: State, new: State) -> Tensor:
        """The first wave block, each convolution behind its tail."""
        snake, up, *units = self.first_block.block
        x = snake(x)
        joined = torch.cat((old["decoder.1.up"][None], x), dim=-1)
        new["decoder.1.up"] = x[..., -1:]
        x = up(joined)[..., up.rate :]
        for number, unit in enumerate(units):
            inner = unit.act1(x)
            joined = _continued(unit.conv1, inner, f"decoder.1.units.{number}", old, new)
            x = unit.conv2(unit.act2(_valid_conv(unit.conv1, joined))) + x
        return x

    def _waves(self, x: Tensor, before: Tensor, valid: Tensor) -> Tensor:
        """The other wave blocks, of x [1, C, T] behind `before` [1, C, H]: [1, 1, T samples]."""
        frames = before.shape[-1]
        samples = prod(self.config.upsample_rates[1:])
        body = x
        for layer in self.rest:
            body = layer(body)
        head = torch.cat((before, x[..., :frames]), dim=-1)
        known = torch.cat((valid.expand(frames), torch.ones(frames, dtype=valid.dtype)))
        for layer in self.rest:
            head, known = _masked(layer, head, known)
        return torch.cat((head[..., frames * samples :], body[..., frames * samples :]), dim=-1)


def _masked(layer: nn.Module, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """`layer` of x where each convolution sees zeros wherever `known` [T] is 0."""
    if not isinstance(layer, WaveBlock):
        return layer(x * known), known
    snake, up, *units = layer.block
    known_after = known.repeat_interleave(up.rate)
    x = up(snake(x * known)) * known_after
    for unit in units:
        x = unit(x) * known_after
    return x, known_after


class StepLayer(nn.Module):
    """A transformer layer whose norms' weights and scales are in its projections."""

    def __init__(self, layer: TransformerLayer, epsilon: float) -> None:
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp
        self.heads, self.head_dim, self.epsilon = attention.heads, attention.head_dim, epsilon
        self.query = _behind_norm(attention.q_proj, layer.input_layernorm, 1 / sqrt(attention.head_dim))
        self.key, self.value = (_behind_norm(p, layer.input_layernorm) for p in (attention.k_proj, attention.v_proj))
        self.out = _scaled(attention.o_proj, layer.self_attn_layer_scale.scale)
        self.gate, self.up = (_behind_norm(p, layer.post_attention_layernorm) for p in (mlp.gate_proj, mlp.up_proj))
        self.down = _scaled(mlp.down_proj, layer.mlp_layer_scale.scale)

    def forward(self, x: Tensor, name: str, old: State, new: State, tables: Tables, mask: Tensor) -> Tensor:
        """X [1, B, C]."""
        normed = _normed(x, self.epsilon)
        query, key, value = (self._by_head(p(normed)) for p in (self.query, self.key, self.value))
        kept = old[f"{name}.keys"].shape[1]
        key = torch.cat((old[f"{name}.keys"], key), dim=1)
        value = torch.cat((old[f"{name}.values"], value), dim=1)
        new[f"{name}.keys"], new[f"{name}.values"] = key[:, -kept:], value[:, -kept:]
        scores = tables.turn_queries(query) @ tables.turn_keys(key).transpose(1, 2) + mask
        mixed = torch.softmax(scores, dim=-1) @ value
        x = x + self.out(mixed.transpose(0, 1).reshape(1, x.shape[1], -1))
        normed = _normed(x, self.epsilon)
        out: Tensor = x + self.down(functional.silu(self.gate(normed)) * self.up(normed))
        return out

    def _by_head(self, x: Tensor) -> Tensor:
        return x.view(x.shape[1], self.heads, self.head_dim).transpose(0, 1)


class Tables(nn.Module):
    """What attention knows of positions: a step's slots are the cached codes, then its own."""

    def __init__(self, kept: int, codes: int, head_dim: int, theta: float) -> None:
        super().__init__()
        slots = torch.arange(kept + codes, dtype=torch.float64)
        cos, sin = rotary_tables(slots, head_dim, theta)
        ago = slots[kept:, None] - slots[None]
        unseen = (ago < 0) | (ago > kept)
        self.kept, self.codes = kept, codes
        self.register_buffer("cos", cos.float())
        self.register_buffer("sin", sin.float())
        self.register_buffer("unseen", torch.where(unseen, MASKED, 0.0))

    def mask(self, valid: Tensor) -> Tensor:
        """What is added to the scores [B, kept + B], of which cached codes there were [kept]."""
        missing = (1 - valid) * MASKED
        return self.unseen + torch.cat((missing, torch.zeros(self.codes, dtype=missing.dtype)))

    def turn_keys(self, keys: Tensor) -> Tensor:
        """Keys [H, kept + B, D]."""
        return keys * self.cos + turned(keys) * self.sin

    def turn_queries(self, queries: Tensor) -> Tensor:
        """Queries [H, B, D], of the last slots."""
        return queries * self.cos[self.kept :] + turned(queries) * self.sin[self.kept :]


def unpacked(cache: Tensor, layout: Cache) -> State:
    """The slices of `cache` [numel], each in its own shape."""
    named = [part for part in layout.layout if part.name != SPARE]
    return {part.name: cache[part.offset : part.offset + prod(part.shape)].reshape(part.shape) for part in named}


def packed(state: State, layout: Cache, cache: Tensor) -> Tensor:
    """The cache of `state`; what is unused stays as it is in `cache`."""
    spare = {part.name: cache[part.offset : part.offset + prod(part.shape)] for part in layout.layout}
    return torch.cat([state.get(part.name, spare[part.name]).reshape(-1) for part in layout.layout])


def _continued(layer: CausalConv, x: Tensor, name: str, old: State, new: State) -> Tensor:
    """X [1, C, T] behind its tail in the cache; the next tail is what is last."""
    joined = torch.cat((old[name][None], x), dim=-1)
    new[name] = joined[..., -layer.history :]
    return joined


def _valid_conv(layer: CausalConv, joined: Tensor) -> Tensor:
    """The convolution of what already has its past in front."""
    out: Tensor = layer.conv(joined)
    return out


def _normed(x: Tensor, epsilon: float) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    with torch.device("meta"):
        made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    made.weight = nn.Parameter(weight.float(), requires_grad=False)
    if bias is not None:
        made.bias = nn.Parameter(bias.float(), requires_grad=False)
    return made


def _behind_norm(layer: nn.Linear, norm: RmsNorm, factor: float = 1.0) -> nn.Linear:
    """`layer` of what the norm gives, times `factor`, as a layer of what it gives without its weight."""
    return _linear(layer.weight.double() * norm.weight.double() * factor, layer.bias)


def _scaled(layer: nn.Linear, scale: Tensor) -> nn.Linear:
    """`layer`, its outputs times `scale`."""
    bias = layer.bias.double() * scale.double() if layer.bias is not None else None
    return _linear(layer.weight.double() * scale.double()[:, None], bias)


class StepConvNeXt(nn.Module):
    """A ConvNeXt block whose gamma is in its last layer, of an input that has its past in front."""

    def __init__(self, block: ConvNeXt) -> None:
        super().__init__()
        self.dwconv, self.norm, self.pwconv1 = block.dwconv, block.norm, block.pwconv1
        self.pwconv2 = _linear(
            block.pwconv2.weight.double() * block.gamma.double()[:, None],
            block.pwconv2.bias.double() * block.gamma.double(),
        )

    def forward(self, x: Tensor, joined: Tensor) -> Tensor:
        """X [1, C, T], the same behind its tail [1, C, 6 + T]."""
        inner = self.norm(_valid_conv(self.dwconv, joined).transpose(1, 2))
        return x + self.pwconv2(functional.gelu(self.pwconv1(inner))).transpose(1, 2)


class StepSnake(nn.Module):
    """SnakeBeta, its exponentials taken: x + sin^2(scale x) / size."""

    def __init__(self, snake: SnakeBeta) -> None:
        super().__init__()
        self.register_buffer("scale", torch.exp(snake.alpha.double()).float()[:, None])
        self.register_buffer("size", (torch.exp(snake.beta.double()) + SNAKE_EPSILON).float()[:, None])

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T]."""
        return x + torch.sin(x * self.scale) ** 2 / self.size


def _folded_snakes(module: nn.Module) -> nn.Module:
    """`module` with a `StepSnake` for each `SnakeBeta`, and the same parameters."""
    made = copy.deepcopy(module, {id(parameter): parameter for parameter in module.parameters()})
    for above in list(made.modules()):
        for name, layer in above.named_children():
            if isinstance(layer, SnakeBeta):
                setattr(above, name, StepSnake(layer))
    return made


class CodesStep(nn.Module):
    """A step from the codes themselves: it looks the hidden state up."""

    def __init__(self, step: Step, quantizer: Quantizer) -> None:
        super().__init__()
        self.step, self.table = step, JoinedTable(quantizer)

    def forward(self, codes: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Codes [1, Q, B] (integers), cache [numel] -> audio [1, 1, 1920 B], cache_out [numel]."""
        audio, out = self.step(self.table(codes), cache)
        return audio, out
