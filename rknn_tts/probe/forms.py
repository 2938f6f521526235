"""The rewritten operators whose board behaviour is unproven: of each, a small graph of the original, how it is written
for the NPU, and how it is found in an engine's twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.seed import SEED
from converters.stages import OpenSession
from rknn_tts.probe.specimens import (
    ABSOLUTE,
    ABSOLUTE_AS_LEAKY,
    MASKED_FRAMES,
    PLACED,
    PLACED_AS_SUM,
    PLACES,
    RELATIVE,
    SNAKE,
    decoder_mask,
)
from rknn_tts.specimens import SPECIMENS, Specimen, specimen_model
from surgery.declaration import Pass
from surgery.fuse_instance_norm import fuse_instance_norm
from surgery.fuse_layer_norm import fuse_layer_norm
from surgery.mask_decoder import mask_decoder
from surgery.rewrite_affine_as_depthwise import rewrite_affine_as_depthwise
from surgery.rewrite_channel_differences import rewrite_channel_differences
from surgery.rewrite_masked_choices import rewrite_masked_choices
from surgery.rewrite_means_as_pools import rewrite_means_as_pools
from surgery.rewrite_relative_attention import rewrite_relative_attention
from surgery.rewrite_sines import EIGHT, rewrite_sines
from surgery.rewrite_transposed_conv import rewrite_transposed_conv
from surgery.sine_forms import Form

MASK = "mask"
"""The input of a specimen that is a mask: ones, then zeros."""

PLACE = "place"
"""The input of a specimen that tells where a window stands, as one number in three: here between others."""

REAL_SHARE = 0.75
"""Of a mask: so much of it is ones."""

_SINES = "rewrite_sines"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Twin:
    """What of an engine's twin tells the forms that it uses.

    Attributes:
        operators: of its nodes, each with the passes that its name tells of.
        negated: whether a LeakyRelu has the slope -1.
        depthwise: whether a convolution of one tap has a group for each channel.
        hits: of each pass, by name.
    """

    operators: frozenset[tuple[str, str]]
    negated: bool
    depthwise: bool
    hits: Mapping[str, int]

    def has(self, operator: str, by: str = "") -> bool:
        """Whether there is a node of that operator, which the pass `by` wrote."""
        return any(kind == operator and by in name for kind, name in self.operators)


@dataclass(frozen=True)
class OperatorForm:
    """One rewritten operator.

    Attributes:
        name: the case's.
        what: what it shows, a clause.
        original: the graph that is right, as an exporter writes it.
        passes: for a target, those that write it for the NPU.
        used: whether an engine of that twin uses it.
        written: the graph as it is written, where no pass does it.
        shorter: the original for so many steps, where the mask's zeros stand for steps that there are not.
    """

    name: str
    what: str
    original: Specimen
    passes: Callable[[str], tuple[Pass, ...]]
    used: Callable[[Twin], bool]
    written: Specimen | None = None
    shorter: Callable[[int], Specimen] | None = None

    @property
    def proves(self) -> tuple[str, ...]:
        """The gates of its passes."""
        return tuple(f"pass.{bound.name}" for bound in self.passes("rk3588"))

    def model(self) -> ir.Model:
        """The original's graph."""
        return graph_of(self.original)

    def feed(self) -> Arrays:
        """Seeded inputs: normal numbers, a mask of ones and zeros, and the place between other windows."""
        rng = np.random.default_rng(SEED)
        feed: Arrays = {}
        for value in self.model().graph.inputs:
            shape = [int(size) for size in value.shape or () if isinstance(size, int)]
            drawn = rng.standard_normal(shape)
            if value.name == MASK:
                drawn = np.broadcast_to(np.arange(shape[-1]) < REAL_SHARE * shape[-1], shape)
            if value.name == PLACE:
                drawn = np.eye(PLACES)[1].reshape(shape)
            feed[str(value.name)] = drawn.astype(np.float32)
        return feed

    def right(self, feed: Arrays, open_session: OpenSession) -> Arrays:
        """What the original operator gives for `feed`; zeros behind a shorter utterance."""
        given = open_session(self.model())(feed)
        if self.shorter is None:
            return given
        steps = int(feed[MASK].sum())
        short = open_session(graph_of(self.shorter(steps)))({name: array[..., :steps] for name, array in feed.items()})
        return {name: _filled(array, given[name].shape[-1]) for name, array in short.items()}


def graph_of(specimen: Specimen) -> ir.Model:
    """The graph of `specimen`."""
    return ir.from_proto(specimen_model(specimen))


def _filled(array: NDArray[Any], steps: int) -> NDArray[Any]:
    """`array` with zeros behind its last axis, up to so many steps."""
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, steps - array.shape[-1])])


def read_twin(model: ir.Model, hits: Mapping[str, int]) -> Twin:
    """What `model`, the twin of an engine whose passes had so many `hits`, uses."""
    nodes = list(model.graph)
    return Twin(
        operators=frozenset((node.op_type, node.name or "") for node in nodes),
        negated=any(node.op_type == "LeakyRelu" and _float(node, "alpha") == -1 for node in nodes),
        depthwise=any(map(_is_depthwise, nodes)),
        hits=hits,
    )


def _float(node: ir.Node, name: str) -> float | None:
    attribute = node.attributes.get(name)
    return attribute.as_float() if attribute is not None else None


def _is_depthwise(node: ir.Node) -> bool:
    """A convolution of one tap with a group for each of its channels, several."""
    group, weight = node.attributes.get("group"), node.inputs[1] if len(node.inputs) > 1 else None
    if node.op_type != "Conv" or group is None or group.as_int() < 2 or weight is None or weight.shape is None:
        return False
    sizes = list(weight.shape)
    return sizes[0] == group.as_int() and all(size == 1 for size in sizes[1:])


def _sine(form: Form, used: Callable[[Twin], bool]) -> OperatorForm:
    return OperatorForm(
        name=f"sine_{form.value}",
        what=f"sin^2 of -6.4 pi to 6.4 pi by the {form.value} form of rewrite_sines, on the NPU, against an exact sine",
        original=SNAKE,
        passes=lambda target: (rewrite_sines(form, EIGHT, target=target),),
        used=used,
    )


def _hits(name: str) -> Callable[[Twin], bool]:
    return lambda twin: twin.hits.get(name, 0) > 0


def _soft(twin: Twin) -> bool:
    return twin.has("Softplus", _SINES)


def _fine(twin: Twin) -> bool:
    """Its folds are v + relu(-2 v - 2 c)."""
    return twin.has("Relu", _SINES)


def _triangle(twin: Twin) -> bool:
    folded = _hits(_SINES)(twin) and twin.has("LeakyRelu", _SINES)
    return folded and not (_soft(twin) or _fine(twin))


FORMS: tuple[OperatorForm, ...] = (
    _sine(Form.TRIANGLE, _triangle),
    _sine(Form.FINE, _fine),
    _sine(Form.SOFT, _soft),
    OperatorForm(
        "absolute_value",
        "an absolute value as a LeakyRelu of slope -1, against |x|",
        ABSOLUTE,
        lambda target: (),
        lambda twin: twin.negated,
        ABSOLUTE_AS_LEAKY,
    ),
    OperatorForm(
        "depthwise_step",
        "a scale and a shift as a depthwise convolution, fused with the LeakyRelu behind it, against Mul and Add",
        SPECIMENS["rewrite_affine_as_depthwise"],
        lambda target: (rewrite_affine_as_depthwise(),),
        lambda twin: twin.depthwise,
    ),
    OperatorForm(
        "polyphase_shuffle",
        "a ConvTranspose of stride 8 as a convolution by phases and a shuffle, against the ConvTranspose",
        SPECIMENS["rewrite_transposed_conv"],
        lambda target: (rewrite_transposed_conv(target),),
        lambda twin: any(_hits(name)(twin) for name in ("rewrite_transposed_conv", "rewrite_long_transposed_conv")),
    ),
    OperatorForm(
        "instance_norm",
        "an InstanceNormalization, of which the toolkit makes exNorm, with its scale and bias behind it",
        SPECIMENS["fuse_instance_norm"],
        lambda target: (fuse_instance_norm(target),),
        lambda twin: twin.has("InstanceNormalization"),
    ),
    OperatorForm(
        "layer_norm",
        "a LayerNormalization, of which the toolkit makes exNorm, against means, squares and roots",
        SPECIMENS["fuse_layer_norm"],
        lambda target: (fuse_layer_norm(),),
        lambda twin: twin.has("LayerNormalization"),
    ),
    OperatorForm(
        "relative_attention",
        "banded relative attention, against the chains of Pad, Reshape and Slice that shift rows",
        RELATIVE,
        lambda target: (rewrite_relative_attention(),),
        _hits("rewrite_relative_attention"),
    ),
    OperatorForm(
        "masked_choices",
        "attention under a mask as products and sums, against a Where, a quarter of the tokens being padding",
        SPECIMENS["rewrite_masked_choices"],
        lambda target: (rewrite_masked_choices(),),
        _hits("rewrite_masked_choices"),
    ),
    OperatorForm(
        "decoder_mask",
        "convolutions under a mask that a ConvTranspose of ones takes from rate to rate, against a shorter utterance",
        decoder_mask(MASKED_FRAMES),
        lambda target: (mask_decoder(MASK),),
        _hits("mask_decoder"),
        shorter=decoder_mask,
    ),
    OperatorForm(
        "place_crop",
        "the middle of a window's steps as a sum of three parts by what an input tells, against a Slice",
        PLACED,
        lambda target: (),
        _hits("trim_decoder"),
        PLACED_AS_SUM,
    ),
    OperatorForm(
        "pooled_statistics",
        "an instance normalisation under a mask by GlobalAveragePool, against sums, a quarter of the steps padding",
        SPECIMENS["rewrite_means_as_pools"],
        lambda target: (rewrite_means_as_pools(), rewrite_channel_differences()),
        lambda twin: twin.has("GlobalAveragePool"),
    ),
)
"""In the order in which a kit runs them."""

AUTO, ALL, NONE = "auto", "all", "none"
CHOICES = (AUTO, ALL, NONE)


def chosen_forms(choice: str, twin: Twin) -> tuple[OperatorForm, ...]:
    """The forms that a kit has: those that the engine of `twin` uses (auto), all of them, or none."""
    wanted: dict[str, Callable[[OperatorForm], bool]] = {
        AUTO: lambda form: form.used(twin),
        ALL: lambda form: True,
        NONE: lambda form: False,
    }
    return tuple(filter(wanted[choice], FORMS))
