"""VITS's text encoder: self-attention with learned offsets of -4..4, layer norms, feed-forward convolutions.

The relative logits [T, 2T-1] (row i, column j: offset j - (T-1)) become [T, T] by skewing: pad, flatten, pad, fold
with one column less or more, slice. That is the chain the exporter leaves, with sizes from Shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.vits_writer.blocks import layer_norm
from tests.vits_writer.graph_writer import INT64_END, GraphWriter
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.shapes import Size, as_vector, pad, padded, pads, part, phonemes_of, reshape, size_of, sizes_of

WINDOW = 4
"""VITS's `window_size`: offsets beyond have no logit and no value of their own."""

FFN_WIDENING = 4
FFN_KERNEL = 3
MASKED = -1e4
"""The logit of what is not attended."""


def transformer(w: GraphWriter, recipe: Recipe, x: str, mask: str, column: str) -> str:
    """x [batch, hidden, T] through `recipe.layers` layers; `column` is its mask [batch, 1, T] as [batch, 1, 1, T]."""
    scope, hidden = "/enc_p/encoder", recipe.hidden
    allowed = w.op(scope, "Mul", column, w.op(scope, "Unsqueeze", mask, w.integers(-1)))
    x = w.op(scope, "Mul", x, mask)
    forbidden = ""
    for layer in range(recipe.layers):
        at = f"{scope}/attn_layers.{layer}"
        # One comparison is kept of those that the layers make.
        forbidden = forbidden or w.op(at, "Equal", allowed, w.real(0.0))
        x = w.op(scope, "Add", x, _attention(w, recipe, at, x, forbidden))
        x = layer_norm(w, f"{scope}/norm_layers_1.{layer}", x, hidden)
        x = w.op(scope, "Add", x, _feed_forward(w, f"{scope}/ffn_layers.{layer}", x, mask, hidden))
        x = layer_norm(w, f"{scope}/norm_layers_2.{layer}", x, hidden)
    return w.op(scope, "Mul", x, mask)


def _attention(w: GraphWriter, recipe: Recipe, at: str, x: str, forbidden: str) -> str:
    hidden, heads = recipe.hidden, recipe.heads
    width = hidden // heads
    query, key, value = (w.conv(f"{at}/conv_{kind}", x, hidden, hidden) for kind in "qkv")
    batch: Size = 1
    if w.dynamo:
        count = query_count = phonemes_of(w, at, key)
    else:
        batch, count = sizes_of(w, at, key, 0, 2)
        query_count = size_of(w, at, query, 2)
    query = w.op(at, "Transpose", reshape(w, at, query, [batch, heads, width, query_count]), perm=[0, 1, 3, 2])
    key = reshape(w, at, key, [batch, heads, width, count])
    value = w.op(at, "Transpose", reshape(w, at, value, [batch, heads, width, count]), perm=[0, 1, 3, 2])
    query = w.op(at, "Div", query, w.real(width**0.5))
    logits = w.op(at, "MatMul", query, key)
    offsets = _offsets(w, at, count)
    of_keys = w.op(at, "Transpose", offsets.of(w, at, "emb_rel_k", width), perm=[0, 1, 3, 2])
    logits = w.op(at, "Add", logits, _by_position(w, at, w.op(at, "MatMul", query, of_keys), heads, count))
    logits = w.op(at, "Where", forbidden, w.real(MASKED), logits)
    weights = w.op(at, "Softmax", logits, axis=-1)
    out = w.op(at, "MatMul", weights, value)
    by_offset = _by_offset(w, at, weights, heads, count)
    out = w.op(at, "Add", out, w.op(at, "MatMul", by_offset, offsets.of(w, at, "emb_rel_v", width)))
    out = w.op(at, "Transpose", out, perm=[0, 1, 3, 2])
    return w.conv(f"{at}/conv_o", reshape(w, at, out, [batch, hidden, query_count]), hidden, hidden)


@dataclass(frozen=True)
class _Offsets:
    """How a table of the learned offsets is brought to the 2T-1 that T positions have."""

    pads: str
    start: Size
    end: str

    def of(self, w: GraphWriter, at: str, kind: str, width: int) -> str:
        """The table `kind`: [1, 1, 2T-1, width], zero beyond the window."""
        name = f"{at.strip('/').replace('/', '.')}.{kind}"
        table = w.weight(name, 1, 2 * WINDOW + 1, width, spread=width**-0.5)
        table = padded(w, at, table, self.pads)
        return w.op(at, "Unsqueeze", part(w, at, table, self.start, self.end, 1), w.integers(0))


def _offsets(w: GraphWriter, at: str, count: str) -> _Offsets:
    """Where T is below 5 the tracing exporter's Pad takes away: what it traced is longer than the window."""
    beyond = w.op(at, "Sub", count, w.scalar(WINDOW + 1))
    start: Size = 0
    end = w.op(at, "Sub", w.op(at, "Mul", count, w.scalar(2)), w.scalar(1))
    if w.dynamo:
        beyond = w.op(at, "Max", w.scalar(0), beyond)
        short = w.op(at, "Add", w.scalar(WINDOW + 1), w.op(at, "Mul", w.scalar(-1), count))
        start = w.op(at, "Max", w.scalar(0), short)
        end = w.op(at, "Add", end, start)
    return _Offsets(pads(w, at, 3, [0, 0, beyond, beyond]), start, end)


def _by_position(w: GraphWriter, at: str, x: str, heads: Size, count: str) -> str:
    """[b, h, T, 2T-1] by offset to [b, h, T, T] by position."""
    batch: Size = 1
    if not w.dynamo:
        batch, heads, count = sizes_of(w, at, x, 0, 1, 2)
    twice = w.op(at, "Mul", count, w.scalar(2))
    x = reshape(w, at, pad(w, at, x, 4, [0, 1]), [batch, heads, w.op(at, "Mul", twice, count)])
    less = w.op(at, "Sub", count, w.scalar(1))
    x = pad(w, at, x, 3, [0, less])
    rows, columns = w.op(at, "Add", count, w.scalar(1)), w.op(at, "Sub", twice, w.scalar(1))
    x = reshape(w, at, x, [batch, heads, rows, columns])
    if w.dynamo:
        return part(w, at, part(w, at, x, 0, count, 2), less, INT64_END, 3)
    # The tracing exporter joins slices that follow each other.
    starts = w.op(at, "Concat", w.integers(0), as_vector(w, at, less), axis=0)
    ends = w.op(at, "Concat", as_vector(w, at, count), w.integers(INT64_END), axis=0)
    return w.op(at, "Slice", x, starts, ends, w.integers(2, 3), w.integers(1, 1))


def _by_offset(w: GraphWriter, at: str, x: str, heads: Size, count: str) -> str:
    """[b, h, T, T] by position to [b, h, T, 2T-1] by offset."""
    batch: Size = 1
    if not w.dynamo:
        batch, heads, count = sizes_of(w, at, x, 0, 1, 2)
    less = w.op(at, "Sub", count, w.scalar(1))
    x = pad(w, at, x, 4, [0, less])
    length = w.op(at, "Add", w.op(at, "Mul", count, count), w.op(at, "Mul", count, less))
    x = pad(w, at, reshape(w, at, x, [batch, heads, length]), 3, [count, 0])
    x = reshape(w, at, x, [batch, heads, count, w.op(at, "Mul", count, w.scalar(2))])
    return part(w, at, x, 1, INT64_END, 3)


def _feed_forward(w: GraphWriter, at: str, x: str, mask: str, hidden: int) -> str:
    """Two convolutions; the tracing exporter keeps their padding apart, the newer one folds it in."""
    wide = FFN_WIDENING * hidden

    def conv(name: str, x: str, c_in: int, c_out: int) -> str:
        x = w.op(at, "Mul", x, mask)
        if w.dynamo:
            return w.conv(f"{at}/{name}", x, c_in, c_out, FFN_KERNEL)
        return w.conv(f"{at}/{name}", pad(w, at, x, 3, [1, 1]), c_in, c_out, FFN_KERNEL, padded=False)

    x = w.op(at, "Relu", conv("conv_1", x, hidden, wide))
    return w.op(at, "Mul", conv("conv_2", x, wide, hidden), mask)
