"""Write out what the toolkit does not derive for itself.

Before:  Split with num_outputs (opset 18) that leaves a shorter last part    After:  the lengths, as an input
Before:  Pad with axes (opset 18)                                             After:  pads for every axis
Before:  Einsum without "->", or with blanks in its equation                  After:  "bij,jk->bik"
Before:  LSTM or GRU with layout 0, the default (torch's new exporter)         After:  without it

Measured with rknn-toolkit2 2.3.2 for rk3588, every operator of opsets 13 to 19 that builds at all, without the
attributes and inputs that have a default, against the simulator: these, LayerNormalization (`normalise_layer_norm`) and
auto_pad (`normalise_auto_pad`) break; all others are right without, from Softmax's axis to Transpose's perm. A layout
it dies of, where both directions are joined behind ("Unrecognized attribute: layout for operator LSTM").

A BatchNormalization in training mode is refused here: the toolkit has none.

Preconditions: a known shape where lengths or pads follow from it; constant pads and axes; inference mode.

Exact: the defaults of the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph import graph_of
from surgery.graph_constants import add_constant
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes
from surgery.weights import weight_of

KNOWN_SHAPE = "a known input shape"
CONSTANT_PADS = "constant pads and axes"
INFERENCE = "batch normalisation in inference mode"

_RECURRENT = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size")

DECLARATION = Declaration(
    name="normalise_defaults",
    summary="split lengths, pads of every axis and einsum outputs written out, a recurrent layout of 0 left out",
    exactness=Exact("the operators' defaults"),
    after=frozenset({"fold_constants", "normalise_opset"}),
    matches=(
        Matched(
            "Split", used=frozenset({"axis", "num_outputs"}), irrelevant={"split": "up to opset 12: lengths already"}
        ),
        Matched("Pad", irrelevant={"mode": "what the padding holds"}),
        Matched("Einsum", used=frozenset({"equation"})),
        Matched(
            "BatchNormalization",
            used=frozenset({"training_mode"}),
            irrelevant={"epsilon": "kept", "momentum": "of training alone"},
        ),
        *(
            Matched(
                op,
                used=frozenset({"layout"}),
                irrelevant=dict.fromkeys((*_RECURRENT, own), "says what is computed, not how it lies"),
            )
            for op, own in (("LSTM", "input_forget"), ("GRU", "linear_before_reset"))
        ),
    ),
    preconditions=(KNOWN_SHAPE, CONSTANT_PADS, INFERENCE),
)


@dataclass(frozen=True)
class _Edit:
    """What a node gets in place: constant inputs (int64 [n]) by position, how many inputs stay, an equation; and what
    attribute it loses."""

    node: ir.Node
    lists: Mapping[int, tuple[int, ...]]
    inputs: int
    equation: str | None = None
    dropped: str | None = None


Found = _Edit | Refused | None


def normalise_defaults() -> Pass:
    """The pass; its hits are the nodes it changed."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _is_matched, _look, _write)


def _is_matched(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches)


def _look(node: ir.Node) -> Found:
    return _LOOKS[node.op_type](node)


def _split(node: ir.Node) -> Found:
    if "num_outputs" not in node.attributes or (len(node.inputs) > 1 and node.inputs[1] is not None):
        return None
    shape = static_shape(node.inputs[0])
    if shape is None:
        return _no_shape(node)
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    parts = node.attributes["num_outputs"].as_int()
    if parts < 1 or not -len(shape) <= axis < len(shape) or shape[axis] % parts == 0:
        return None
    whole = shape[axis]
    part = -(-whole // parts)
    lengths = tuple(max(min(part, whole - start), 0) for start in range(0, part * parts, part))
    return _Edit(node, {1: lengths}, inputs=2)


def _pad(node: ir.Node) -> Found:
    if len(node.inputs) < 4 or node.inputs[3] is None:
        return None
    shape = None if node.inputs[0] is None else node.inputs[0].shape  # only its rank is asked for
    if shape is None:
        return _no_shape(node)
    lists = [_whole_numbers(node.inputs[place]) for place in (1, 3)]
    if None in lists:
        value = node.inputs[1 + 2 * lists.index(None)]
        got = "none" if value is None else f"'{value.name}' is computed"
        return Refused(node_label(node), CONSTANT_PADS, "weights", got)
    pads, axes = (values or () for values in lists)
    if len(pads) != 2 * len(axes) or any(not -len(shape) <= axis < len(shape) for axis in axes):
        return None  # onnxruntime says what is wrong with it
    written = [0] * (2 * len(shape))
    for place, axis in enumerate(axes):
        written[axis % len(shape)] = pads[place]
        written[axis % len(shape) + len(shape)] = pads[place + len(axes)]
    return _Edit(node, {1: tuple(written)}, inputs=3 if node.inputs[2] is not None else 2)


def _einsum(node: ir.Node) -> Found:
    given = node.attributes["equation"].as_string()
    terms, _, output = "".join(given.split()).partition("->")
    if "->" not in given:
        letters = sorted(letter for letter in set(terms) - set(",.") if terms.count(letter) == 1)
        output = ("..." if "..." in terms else "") + "".join(letters)
    equation = f"{terms}->{output}"
    return None if equation == given else _Edit(node, {}, inputs=len(node.inputs), equation=equation)


def _batch_normalization(node: ir.Node) -> Found:
    if "training_mode" in node.attributes and node.attributes["training_mode"].as_int():
        return Refused(node_label(node), INFERENCE, "training_mode 0", "1: export the model in evaluation mode")
    return None


def _recurrent(node: ir.Node) -> Found:
    if "layout" not in node.attributes or node.attributes["layout"].as_int():
        return None  # onnxruntime runs no other
    return _Edit(node, {}, inputs=len(node.inputs), dropped="layout")


_LOOKS: Mapping[str, Callable[[ir.Node], Found]] = {
    "Split": _split,
    "Pad": _pad,
    "Einsum": _einsum,
    "BatchNormalization": _batch_normalization,
    "LSTM": _recurrent,
    "GRU": _recurrent,
}


def _no_shape(node: ir.Node) -> Refused:
    return Refused(node_label(node), KNOWN_SHAPE, "static sizes", "unknown ones")


def _whole_numbers(value: ir.Value | None) -> tuple[int, ...] | None:
    weight = weight_of(value)
    return None if weight is None else tuple(int(number) for number in weight.reshape(-1))


def _write(edit: _Edit) -> None:
    node = edit.node
    node.resize_inputs(edit.inputs)
    for place, numbers in edit.lists.items():
        name = f"{node.outputs[0].name}.{DECLARATION.name}.{place}"
        node.replace_input_with(place, add_constant(graph_of(node), name, np.array(numbers, np.int64)))
    if edit.equation is not None:
        node.attributes["equation"] = ir.AttrString("equation", edit.equation)
    if edit.dropped is not None:
        del node.attributes[edit.dropped]
    if edit.lists:
        node.attributes.pop("num_outputs", None)
