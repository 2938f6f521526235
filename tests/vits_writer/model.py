"""A graph as a model: its inputs and outputs, opset, metadata, and the names of the exporter."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import TensorProto, ValueInfoProto, helper

from tests.vits_writer.graph_writer import GraphWriter
from tests.vits_writer.names import dynamo_names, name_nodes, renamed
from tests.vits_writer.recipe import Recipe

LEGACY_IR, DYNAMO_IR = 8, 10
"""IR versions that torch 2.0 and torch 2.13 write."""

PROSODY_FEATURES = 3
"""piper-plus' A1, A2 and A3 of Japanese accent phrases."""


def writer_of(recipe: Recipe) -> GraphWriter:
    """An empty graph in the exporter's dialect."""
    return GraphWriter(recipe.seed, opset=recipe.model_opset, dynamo=recipe.exporter == "dynamo")


def voice_inputs(recipe: Recipe) -> list[ValueInfoProto]:
    """The inputs of a voice, in piper-plus' order."""
    batch, phonemes = _batch(recipe), "s27" if recipe.exporter == "dynamo" else "phonemes"
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, [batch, phonemes]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, [batch]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
    ]
    if recipe.speakers > 1:
        inputs.append(helper.make_tensor_value_info("sid", TensorProto.INT64, [batch]))
    if recipe.languages > 1:
        inputs.append(helper.make_tensor_value_info("lid", TensorProto.INT64, [batch]))
    if recipe.prosody:
        shape = [batch, phonemes, PROSODY_FEATURES]
        inputs.append(helper.make_tensor_value_info("prosody_features", TensorProto.INT64, shape))
    return inputs


def seam_values(recipe: Recipe, frames: str = "frames") -> list[ValueInfoProto]:
    """`z` and `y_mask` for one sentence."""
    return [
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, recipe.latent, frames]),
        helper.make_tensor_value_info("y_mask", TensorProto.FLOAT, [1, 1, frames]),
    ]


def samples(recipe: Recipe, name: str) -> ValueInfoProto:
    """Samples [batch, 1, 1, n]."""
    if recipe.exporter == "dynamo":
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 1, f"{recipe.hop}*u0"])
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch_size", "time", 1, "samples"])


def assembled(
    w: GraphWriter,
    recipe: Recipe,
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    names: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """What was written, with the tracing exporter's names; `names` are other names for some values."""
    dynamo = recipe.exporter == "dynamo"
    model = helper.make_model(
        w.graph("main_graph" if dynamo else "torch_jit", inputs, outputs),
        opset_imports=[helper.make_opsetid("", recipe.model_opset)],
        ir_version=DYNAMO_IR if dynamo else LEGACY_IR,
        producer_name="pytorch",
    )
    return renamed(model, names) if names else model


def finished(model: onnx.ModelProto, recipe: Recipe) -> onnx.ModelProto:
    """The assembled `model` with the names of its exporter and with metadata, checked."""
    if recipe.exporter == "dynamo":
        model = renamed(_without_dead_nodes(model), exporter_names(model, recipe))
        name_nodes(model)
    if recipe.metadata:
        helper.set_model_props(model, sherpa_metadata(recipe))
    onnx.checker.check_model(model, full_check=True)
    return model


def exporter_names(model: onnx.ModelProto, recipe: Recipe) -> dict[str, str]:
    """What the exporter calls the values of the assembled `model`; the tracing one has named them already."""
    return dynamo_names(_without_dead_nodes(model)) if recipe.exporter == "dynamo" else {}


def sherpa_metadata(recipe: Recipe) -> dict[str, str]:
    """What sherpa-onnx's `scripts/piper/add_meta_data.py` writes into a voice."""
    return {
        "model_type": "vits",
        "comment": "piper",
        "language": "English",
        "voice": "en-us",
        "has_espeak": "1",
        "n_speakers": str(recipe.speakers),
        "sample_rate": str(recipe.sample_rate),
    }


def _without_dead_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without nodes and weights that nothing reads, which the newer exporter leaves out."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    read = {value.name for value in copy.graph.output}
    nodes = []
    for node in reversed(model.graph.node):
        if read.intersection(node.output):
            read.update(node.input)
            nodes.append(node)
    del copy.graph.node[:]
    copy.graph.node.extend(reversed(nodes))
    del copy.graph.initializer[:]
    copy.graph.initializer.extend(weight for weight in model.graph.initializer if weight.name in read)
    return copy


def _batch(recipe: Recipe) -> int | str:
    """The newer exporter takes the example's batch of one for what it is."""
    return 1 if recipe.exporter == "dynamo" else "batch_size"
