"""The host half of a Piper voice: phoneme ids to the latent and its mask, with the noise as inputs.

Everything before the seam, as an ONNX for onnxruntime on the board's CPU. The voice's random operators become inputs,
so that a run can be repeated; their lengths follow the durations, so an input may be longer than needed and is cut:

    RandomNormalLike(x)   ->   Slice(noise, starts=0, ends=Shape(x)) on every axis

Inputs: the voice's own, the speaker's id and what else it has included, then `noise_duration` [1, 2, >= T] and
`noise_latent` [1, C, >= N], standard normal float32.
Outputs: `z` [1, C, N] and `y_mask` [1, 1, N], float32; of a voice of several speakers also `g` [1, G, 1], the speaker's
embedding, which the engine takes beside them.
Metadata: what a board needs to know of the voice (`voice_metadata`).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from converters.piper.names import NOISE_DURATION, NOISE_LATENT, SPEAKER
from converters.piper.voice import Voice
from converters.piper.voice_metadata import tell_voice
from converters.vits_seam import VitsSeam
from converters.vits_windows import LATENT, MASK
from surgery.graph import ancestors, extract, move_aside, value_named

_DEFAULTS = {"mean": 0.0, "scale": 1.0}
"""RandomNormalLike's defaults (ONNX operator specification): a standard normal."""


def seam_values(seam: VitsSeam) -> dict[str, str]:
    """The values at the seam, in the order of the engine's inputs, and what they are called there."""
    speaker = {} if seam.speaker is None else {seam.speaker: SPEAKER}
    return {seam.latent: LATENT, seam.mask: MASK, **speaker}


def seam_shapes(seam: VitsSeam) -> dict[str, ir.Shape]:
    """What stands at the seam, by its name there; exporters state no shapes inside a graph."""
    speaker = {} if seam.speaker is None else {SPEAKER: ir.Shape([1, "speaker_channels", 1])}
    return {LATENT: ir.Shape([1, "channels", "frames"]), MASK: ir.Shape([1, 1, "frames"]), **speaker}


def host_half(voice: Voice) -> ir.Model:
    """The host half of `voice`.

    Raises:
        Refusal: a random operator is not a standard normal of another tensor's shape; the node is named.
    """
    names = voice.inputs.names
    model = extract(
        voice.model,
        inputs=dict(zip(names, names, strict=True)),
        outputs=seam_values(voice.seam),
    )
    graph = model.graph
    # Exporters state no types inside a graph; an output needs one.
    for value, (_, *others) in zip(graph.outputs, seam_shapes(voice.seam).values(), strict=True):
        value.dtype, value.shape = ir.DataType.FLOAT, ir.Shape(["batch", *others])
    noises = _names_of(list(graph), value_named(graph, voice.seam.noise).producer())
    move_aside(graph, noises.values())
    for node, name in noises.items():
        _noise_to_input(graph, node, name, voice)
    graph.sort()
    return tell_voice(model, voice)


def noise_inputs(voice: Voice) -> dict[str, str]:
    """The host half's noise inputs: none, one or several for the durations, then the latent's.

    Returns:
        The name of the value that the voice draws, to the name of the input that takes its place.
    """
    graph, seam = voice.model.graph, voice.seam
    before = ancestors([value_named(graph, name) for name in seam_values(seam)])
    names = _names_of([node for node in graph if node in before], value_named(graph, seam.noise).producer())
    return {str(node.outputs[0].name): name for node, name in names.items()}


def _names_of(nodes: list[ir.Node], latent_noise: ir.Node | None) -> dict[ir.Node, str]:
    """The name of the input that replaces each random operator in `nodes`."""
    others = [node for node in nodes if node.op_type.startswith("Random") and node is not latent_noise]
    names = {node: NOISE_DURATION + (f"_{i}" if len(others) > 1 else "") for i, node in enumerate(others)}
    return names if latent_noise is None else {**names, latent_noise: NOISE_LATENT}


def _noise_to_input(graph: ir.Graph, node: ir.Node, name: str, voice: Voice) -> None:
    plain = all(float(node.attributes[k].value) == v for k, v in _DEFAULTS.items() if k in node.attributes)
    like = node.inputs[0] if node.op_type == "RandomNormalLike" and node.inputs else None
    if like is None or not plain:
        raise Refusal(
            f"{voice.path}: the random operator {node.name} ({node.op_type}) is no standard normal of another tensor's "
            "shape, so its noise cannot become an input of the host half."
        )
    noise = ir.val(name, ir.DataType.FLOAT, ir.Shape([f"{name}_batch", f"{name}_channels", f"{name}_steps"]))
    graph.inputs.append(noise)
    zeros = ir.val(f"{name}/starts", const_value=ir.tensor(np.zeros(3, np.int64), name=f"{name}/starts"))
    graph.register_initializer(zeros)
    size = ir.node("Shape", [like], name=f"{name}/size")
    size.outputs[0].name = f"{name}/size"
    cut = ir.node("Slice", [noise, zeros, size.outputs[0]], name=f"{name}/cut")
    cut.outputs[0].name = f"{name}/cut"
    node.outputs[0].replace_all_uses_with(cut.outputs[0])
    graph.remove(node, safe=True)
    graph.extend([size, cut])
