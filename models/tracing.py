"""A torch module as an ONNX graph, by torch's exporter, which says nothing meanwhile."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
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
    model = program.model.clone()
    # The exporter's rules know the last graph they looked at, and with it the module's weights (torch 2.13).
    for value in program.model.graph.initializers.values():
        value.const_value = None
    model.opset_imports[""] = OPSET
    return model


def traced_by_script(
    module: nn.Module,
    example: tuple[Tensor, ...],
    inputs: Sequence[str],
    outputs: Sequence[str],
    opset: int,
    dynamic_axes: Mapping[str, Mapping[int, str]],
) -> ir.Model:
    """`module` as torch's older exporter writes it, which most published files come from.

    It names a node after the module that it is from (`/flow/flows.6/Concat`), reads sizes off tensors (`Shape`) where
    an axis may have any length, and leaves weights under their names.

    Args:
        module: what is traced.
        example: a value for each of its inputs.
        inputs: names of its inputs, in order.
        outputs: names of its outputs, in order.
        opset: of the default domain.
        dynamic_axes: of inputs and outputs by name, the axes of any length and what they are called.
    """
    written = io.BytesIO()
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")  # that it is the older one, and of sizes that it takes for constants
        torch.onnx.export(
            module,
            example,
            written,  # type: ignore[arg-type]  # any buffer is taken, its annotation knows paths only
            input_names=list(inputs),
            output_names=list(outputs),
            opset_version=opset,
            dynamic_axes=dynamic_axes,
            dynamo=False,
            verbose=False,
        )
    return ir.from_proto(onnx.load_from_string(written.getvalue()))


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
