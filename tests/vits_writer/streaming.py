"""A voice in two files, as piper_train's `export_onnx_streaming` writes it."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from tests.vits_writer.decoder import Conditions, decode, reverse_flow
from tests.vits_writer.model import assembled, finished, seam_values, voice_inputs, writer_of
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import write_encoder_half


def streaming_pair(recipe: Recipe | None = None) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Encoder and decoder of the voice.

    The encoder takes the voice's inputs to `z` [1, C, time] (the latent before the flow), `y_mask` [1, 1, time], and
    where there are several speakers or languages their embedding `g` [1, hidden, 1]. The decoder takes these to
    `output` [1, 1, samples]: one axis less than a whole voice's.
    """
    recipe = recipe or Recipe()
    w = writer_of(recipe)
    half = write_encoder_half(w, recipe)
    written = {half.latent: "z", half.mask: "y_mask"}
    given = seam_values(recipe, "time")
    if half.condition is not None:
        written[half.condition] = "g"
        given.append(helper.make_tensor_value_info("g", TensorProto.FLOAT, [1, recipe.hidden, 1]))
    outputs = []
    for name, value in zip(written, given, strict=True):
        outputs.append(onnx.ValueInfoProto())
        outputs[-1].CopyFrom(value)
        outputs[-1].name = name
    encoder = finished(assembled(w, recipe, voice_inputs(recipe), outputs, written), recipe)
    w = writer_of(recipe)
    conditions = Conditions("y_mask" if recipe.mask else None, "g" if half.condition is not None else None)
    decode(w, recipe, reverse_flow(w, recipe, "z", conditions), conditions)
    samples = helper.make_tensor_value_info(w.name_last("output"), TensorProto.FLOAT, [1, 1, "samples"])
    return encoder, finished(assembled(w, recipe, given, [samples]), recipe)


def write_streaming_pair(folder: Path, recipe: Recipe | None = None) -> tuple[Path, Path]:
    """Writes `encoder.onnx` and `decoder.onnx`, as the exporter calls them, into `folder`; it writes no JSON."""
    paths = folder / "encoder.onnx", folder / "decoder.onnx"
    for path, model in zip(paths, streaming_pair(recipe), strict=True):
        onnx.save(model, path)
    return paths
