"""The float form of a Kokoro ONNX: what the weights are recovered from, and the original that gates compare with."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.passes import common

from contracts.errors import Refusal
from converters.kokoro.graph_modules import GraphModules, constant_shape
from surgery.decompose_quantised import decompose_quantised
from surgery.decompose_quantised_operators import decompose_quantised_operators
from surgery.fold_dequantised_weights import fold_dequantised_weights
from surgery.graph import input_at


@dataclass(frozen=True)
class FloatGraph:
    """A graph without quantised operators.

    Attributes:
        model: the graph.
        was_quantised: whether the one it was made from had any.
    """

    model: ir.Model
    was_quantised: bool


@dataclass(frozen=True)
class GeneratorValues:
    """Names of the generator's values in a graph.

    Attributes:
        x: [1, 512, N], before the first activation.
        har: [1, 22, 60 N + 1], magnitudes and phases of the harmonic source.
        style: [1, 128].
        conv_post: [1, 22, 60 N + 1], the raw output of the last convolution.
    """

    x: str
    har: str
    style: str
    conv_post: str


def float_graph(model: ir.Model, source: str) -> FloatGraph:
    """`model` with float operators on its dequantised weights in the place of quantised ones.

    Activations are rounded no more, so it is no nearer to the quantised graph than the float model it came from is.
    Weights that several nodes hold alike (ALBERT's layers) are one again.

    Args:
        model: is not changed.
        source: the file's name, for messages.

    Raises:
        Refusal: something in it has no float form; the node is named.
    """
    hits = 0
    for bound in (fold_dequantised_weights(), decompose_quantised_operators(), decompose_quantised()):
        done = bound.rewrite(model)
        if done.refused:
            first = done.refused[0]
            raise Refusal(
                f"{source}: its quantised operators cannot be made float: the node {first.node}: {first.got}; give "
                "the float export of the model."
            )
        model, hits = done.model, hits + done.hits
    if hits:
        common.DeduplicateHashedInitializersPass(size_limit=1 << 31)(model)
    return FloatGraph(model, hits > 0)


def generator_values(graph: GraphModules) -> GeneratorValues:
    """Where the generator begins and ends.

    Raises:
        Refusal: the graph has no generator as Kokoro has it.
    """
    last = graph.node("decoder.module.generator.conv_post", "Conv")
    filters = constant_shape(graph.weight(last, 1))[:1]
    upsampling = input_at(graph.node("decoder.module.generator.ups.0", "ConvTranspose"), 0)
    activation = None if upsampling is None else upsampling.producer()
    if activation is None or activation.op_type != "LeakyRelu":
        raise Refusal(f"{graph.source}: is no Kokoro: nothing like its activation is before generator.ups.0.")
    return GeneratorValues(
        x=_given(graph, activation),
        har=_given(graph, graph.node("decoder.module.generator.noise_convs.0", "Conv")),
        style=_given(graph, graph.node("decoder.module.generator.resblocks.0.adain1.0.fc", "MatMul", "Gemm")),
        conv_post=str(graph.with_bias(last, 2, sum(filters)).name),
    )


def _given(graph: GraphModules, node: ir.Node) -> str:
    """The name of what `node` is computed from."""
    value = input_at(node, 0)
    if value is None:
        raise Refusal(f"{graph.source}: is damaged: the node {node.name} has no input.")
    return str(value.name)
