"""What the tests of the passes share."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from tests.onnx_runs import Array, as_proto
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model


def decoder(recipe: Recipe | None = None) -> ir.Model:
    """The decoder half of a small voice, frames open."""
    return ir.from_proto(decoder_model(recipe))


def latent(recipe: Recipe, frames: int, seed: int = 1) -> Array:
    """White noise [1, C, frames]."""
    return np.random.default_rng(seed).standard_normal((1, recipe.latent, frames)).astype(np.float32)


def decoder_feed(recipe: Recipe, frames: int) -> dict[str, Array]:
    """White noise and a mask of ones."""
    return {"z": latent(recipe, frames), "y_mask": np.ones((1, 1, frames), np.float32)}


def static_shapes(recipe: Recipe, frames: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the decoder's inputs for a window of `frames`."""
    return {"z": (1, recipe.latent, frames), "y_mask": (1, 1, frames)}


def serialised(model: ir.Model) -> bytes:
    """The bytes of `model`, to see whether it was touched."""
    data: bytes = as_proto(model).SerializeToString(deterministic=True)
    return data


def check(model: ir.Model) -> None:
    """onnx's own checker, shapes included."""
    onnx.checker.check_model(as_proto(model), full_check=True)
