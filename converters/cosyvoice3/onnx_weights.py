"""The weights of CosyVoice3's flow estimator, found in the ONNX that upstream exports of it. No torch."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from converters.cosyvoice3.estimator_sizes import ADVICE, WHOSE
from converters.onnx_linear_weights import Exported, Weights
from models.cosyvoice3.layout import INPUTS, OUTPUT

_ANGLES = ".inv_freq"
"""Ends the name of the rotation's angles."""


def onnx_weights(model: ir.Model, path: Path) -> Weights:
    """The weights of the estimator `model`, read from `path`, by upstream's names; views of what the file holds.

    Raises:
        Refusal: it is another graph, or a linear layer's weight cannot be found; the tensor is named.
    """
    exported = Exported(model, path, WHOSE, ADVICE)
    exported.check_ends(INPUTS, OUTPUT)
    return exported.weights((_ANGLES,))
