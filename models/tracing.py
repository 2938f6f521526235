"""A torch module as an ONNX graph, by torch's exporter, which says nothing meanwhile."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor, nn

OPSET = 18
"""The newest that the exporter writes without converting, and older than the toolkit's newest, 19."""


def traced(
    module: nn.Module, example: tuple[Tensor, ...], inputs: Sequence[str], outputs: Sequence[str], **options: Any
) -> ir.Model:
    """`module` as an ONNX graph.

    Args:
        module: what is traced.
        example: a value for each of its inputs; their shapes are the graph's.
        inputs: names of its inputs, in order.
        outputs: names of its outputs, in order.
        options: others of the exporter's: `dynamic_shapes`.
    """
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")  # of packages that it looks for, and of its own parts
        program = torch.onnx.export(
            module,
            example,
            input_names=list(inputs),
            output_names=list(outputs),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
            **options,
        )
    assert program is not None
    model = program.model
    model.opset_imports[""] = OPSET
    return model


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter logs what is not installed, and prints its progress."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)
