"""Give integer inputs a type that an engine's input can have.

Before: an input of uint8, uint16, int16, uint32 or uint64, read by Casts; or one of int8 that Casts make int32 or int64
of. After: the same input as int64 (uint32, uint64) or int32, read by the same Casts.

Measured (rknn-toolkit2 2.3.2, rk3588): inputs of bool, int8, int32 and int64 build and are right in the simulator; they
index 5000 rows exactly, and where they are cast to float they overflow in float16 above 65504. uint16, int16, uint32
and uint64 end in "Not support input data type", uint8 in "Not Support Dtype: 2". The toolkit tries a graph on numbers
of its own: any that an int8 holds, past a table's end and before its beginning ("indices element out of data bounds").

Precondition: nothing but Casts reads the input; other operators compute in its type, uint8 modulo 256 for one.

Exact: every value of the narrow type is one of the wide type, and a Cast of it gives the same. (A uint64 above 2^63 is
none, and no feed of an engine either.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Interface, Pass, Recast, Refused, Rewritten
from surgery.matching import Matched, is_one_of

CASTS_ONLY = "an integer input that an engine cannot have is read by Casts only"
KNOWN_SHAPE = "a known shape for an integer input that becomes wider"

WIDER: Mapping[ir.DataType, ir.DataType] = {
    ir.DataType.INT8: ir.DataType.INT32,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT8: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    ir.DataType.UINT32: ir.DataType.INT64,
    ir.DataType.UINT64: ir.DataType.INT64,
}

_FLOAT8 = "says how float8 saturates; an integer is none"
CAST = Matched("Cast", used=frozenset({"to"}), irrelevant={"saturate": _FLOAT8})

DECLARATION = Declaration(
    name="normalise_integer_inputs",
    summary="make int32 or int64 of integer inputs that an engine cannot have",
    exactness=Exact("every value of the narrower type is one of the wider"),
    after=frozenset({"decompose_functions", "decompose_missing_kernels", "decompose_quantised", "fold_constants"}),
    matches=(CAST,),
    preconditions=(CASTS_ONLY, KNOWN_SHAPE),
)


def normalise_integer_inputs() -> Pass:
    """The pass; its hits are inputs."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not _narrow(model.graph):
            return Rewritten(model, 0)
        refused = tuple(_refused(model.graph))
        if refused:
            return Rewritten(model, 0, refused)
        clone = model.clone()
        changed = []
        for value in _narrow(clone.graph):
            assert value.dtype is not None
            wider = WIDER[value.dtype]
            value.type = ir.TensorType(wider)
            assert value.name is not None
            assert value.shape is not None
            changed.append(Recast(value.name, tuple(value.shape.numpy()), wider.name.lower()))
        return Rewritten(clone, len(changed), interface=Interface(inputs=tuple(changed)))

    return Pass(DECLARATION, rewrite)


def _narrow(graph: ir.Graph) -> list[ir.Value]:
    return [
        value
        for value in graph.inputs
        if value.dtype in WIDER
        and value.name not in graph.initializers
        and (value.dtype is not ir.DataType.INT8 or _becomes_an_index(value))
    ]


def _becomes_an_index(value: ir.Value) -> bool:
    """Whether nothing but Casts reads `value`, and one makes a type of it that can index."""
    casts = [node for node in value.consumers() if is_one_of(node, (CAST,))]
    targets = {ir.DataType(node.attributes["to"].as_int()) for node in casts}
    return len(casts) == len(value.consumers()) and bool(targets & {ir.DataType.INT32, ir.DataType.INT64})


def _refused(graph: ir.Graph) -> Iterator[Refused]:
    for value in _narrow(graph):
        label = f"input '{value.name}'"
        other = next((node for node in value.consumers() if not is_one_of(node, (CAST,))), None)
        if other is not None:
            got = f"{other.op_type} reads the {value.dtype.name.lower() if value.dtype else '?'}"
            yield Refused(label, CASTS_ONLY, "a Cast to bool, int8, int32, int64 or float32", got)
        elif value.shape is None or not value.shape.is_static():
            shape = "no shape" if value.shape is None else f"[{', '.join(map(str, value.shape))}]"
            yield Refused(label, KNOWN_SHAPE, "whole numbers", shape)
