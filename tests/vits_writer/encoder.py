"""Before the seam: phoneme ids to mean and spread of the latent, and their expansion to frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from tests.vits_writer.attention import transformer
from tests.vits_writer.graph_writer import GraphWriter
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.shapes import phonemes_of

ENCODER_NOISE = 0.1


@dataclass(frozen=True)
class Encoded:
    """Names of [1, C, T] mean and log spread, [1, hidden, T] features, and the phoneme mask [1, 1, T].

    `column` is the mask as [1, 1, 1, T], where the encoder made it.
    """

    mean: str
    logs: str
    features: str
    mask: str
    column: str = ""


def encode(w: GraphWriter, recipe: Recipe, ids: str, lengths: str) -> Encoded:
    """The phoneme encoder."""
    spread = recipe.hidden**-0.5 if recipe.attention else 1.0
    table = w.weight("enc_p.emb.weight", recipe.symbols, recipe.hidden, spread=spread)
    x = w.node("Gather", "/enc_p/emb/Gather", table, ids)
    if recipe.attention:
        x = w.node("Mul", "/enc_p/emb/Mul", x, w.real(recipe.hidden**0.5))
    x = w.node("Transpose", "/enc_p/Transpose", x, perm=[0, 2, 1])
    mask = w.sequence_mask("/enc_p", phonemes_of(w, "/enc_p", x) if w.dynamo else w.size("/enc_p", x, 2), lengths)
    x = w.node("Mul", "/enc_p/Mul", x, mask)
    if recipe.attention:
        column = w.op("/enc_p/encoder", "Unsqueeze", mask, w.integers(2))
        x = transformer(w, recipe, x, mask, column)
    else:
        column = ""
        x = w.conv("/enc_p/encoder/conv", x, recipe.hidden, recipe.hidden, kernel=3)
        x = w.node("Relu", "/enc_p/encoder/Relu", x)
    if recipe.encoder_noise:
        noise = w.node("Mul", "/enc_p/Mul_2", w.normal_like("/enc_p", x), w.real(ENCODER_NOISE))
        x = w.node("Add", "/enc_p/Add", x, noise)
    if recipe.encoder_noise or not recipe.attention:  # attention ends masked
        x = w.node("Mul", "/enc_p/encoder/Mul_end" if recipe.attention else "/enc_p/encoder/Mul", x, mask)
    stats = w.conv("/enc_p/proj", x, recipe.hidden, 2 * recipe.latent)
    stats = w.node("Mul", "/enc_p/Mul_1", stats, mask)
    mean, logs = w.halves("/enc_p", stats, recipe.latent)
    return Encoded(mean, logs, x, mask, column)


def expand(w: GraphWriter, encoded: Encoded, frames: str) -> tuple[str, str, str]:
    """Mean and log spread by frame, [1, C, N], and the frame mask [1, 1, N]."""
    total = w.node("ReduceSum", "/ReduceSum", frames, w.integers(1, 2), keepdims=0)
    total = w.node("Cast", "/Cast", w.node("Clip", "/Clip", total, w.real(1.0), ""), to=TensorProto.INT64)
    mask = w.sequence_mask("/frames", w.node("ReduceMax", "/ReduceMax", total, keepdims=0), total)
    rows = w.node("Unsqueeze", "/Unsqueeze_3", mask, w.integers(-1))
    column = encoded.column or w.node("Unsqueeze", "/enc_p/encoder/Unsqueeze", encoded.mask, w.integers(2))
    area = w.node("Mul", "/Mul_2", column, rows)
    path = w.node("Mul", "/Mul_4", _path(w, frames, area), area)
    path = w.node("Squeeze", "/Squeeze", path, w.integers(1))
    by_frame = []
    for number, stats in enumerate((encoded.mean, encoded.logs)):
        columns = w.node("Transpose", f"/stats.{number}/Transpose", stats, perm=[0, 2, 1])
        chosen = w.node("MatMul", f"/stats.{number}/MatMul", path, columns)
        by_frame.append(w.node("Transpose", f"/stats.{number}/Transpose_1", chosen, perm=[0, 2, 1]))
    return by_frame[0], by_frame[1], mask


def _path(w: GraphWriter, frames: str, area: str) -> str:
    """1 where a frame belongs to a phoneme, [1, 1, N, T]: positions below the running sum, less those of the last."""
    shape = w.node("Shape", "/Shape", area)
    batch, count, phonemes = (w.node("Gather", f"/Gather_{axis}", shape, w.scalar(axis), axis=0) for axis in (0, 2, 3))
    last = w.constant("/Constant_last_axis", np.array(-1, np.int32))
    ends = w.node("CumSum", "/CumSum", frames, last)
    flat = w.node("Unsqueeze", "/Unsqueeze_4", w.node("Mul", "/Mul_3", batch, phonemes), w.integers(0))
    ends = w.node("Unsqueeze", "/Unsqueeze_6", w.node("Reshape", "/Reshape", ends, flat), w.integers(1))
    limit = w.node("Cast", "/Cast_3", count, to=TensorProto.FLOAT)
    row = w.node("Range", "/Range_1", w.real(0.0), limit, w.real(1.0))
    below = w.node("Less", "/Less_1", w.node("Unsqueeze", "/Unsqueeze_5", row, w.integers(0)), ends)
    below = w.node("Cast", "/Cast_4", below, to=TensorProto.FLOAT)
    sizes = [
        w.node("Unsqueeze", f"/path/Unsqueeze_{i}", s, w.integers(0)) for i, s in enumerate((batch, phonemes, count))
    ]
    below = w.node("Reshape", "/Reshape_1", below, w.node("Concat", "/Concat_1", *sizes, axis=0))
    padded = w.node("Pad", "/Pad", below, w.integers(0, 1, 0, 0, 0, 0), "")
    before = w.slice("/Slice_1", padded, 0, -1)
    path = w.node("Unsqueeze", "/Unsqueeze_10", w.node("Sub", "/Sub", below, before), w.integers(1))
    return w.node("Transpose", "/Transpose_1", path, perm=[0, 1, 3, 2])
