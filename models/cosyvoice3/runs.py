"""Makes the estimator of arrays, traces it, and runs it on arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray

from models.cosyvoice3.config import DitConfig
from models.cosyvoice3.dit import Dit
from models.cosyvoice3.estimator import Estimator
from models.cosyvoice3.layout import INPUTS, OUTPUT, input_shapes
from models.tracing import traced

FloatArray = NDArray[np.float32]


def dit_of(weights: Mapping[str, FloatArray], config: DitConfig) -> Dit:
    """The estimator in upstream's arithmetic; its parameters are `weights`, not copies."""
    with torch.device("meta"):
        dit = Dit(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arrays that may not be written to, as those of a file: nothing is
        tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    dit.load_state_dict(tensors, assign=True)
    return dit.requires_grad_(False).eval()


def estimated(dit: Dit, feed: Mapping[str, NDArray[np.generic]]) -> FloatArray:
    """What `dit` gives for the inputs `feed`, [2, mel, T]."""
    with torch.inference_mode():
        out: FloatArray = dit(*(torch.from_numpy(np.ascontiguousarray(feed[name])) for name in INPUTS)).numpy()
    return out


def estimator_graph(dit: Dit, frames: int) -> ir.Model:
    """The estimator for so many frames in an NPU's forms, as an ONNX graph before any pass."""
    shapes = input_shapes(dit.config, frames)
    example = tuple(torch.zeros(shape) for shape in shapes.values())
    return traced(Estimator(dit, frames).eval(), example, list(shapes), [OUTPUT])
