"""Cast to int32 by way of int64.

Before: `Cast` of float32 or bool to int32. After: a Cast to int64 and a Cast of that to int32.

The toolkit has no conversion for the one ("dataconvert type -1 is unsupport in current!", the build stops) and has both
of the others, on the CPU (measured, rknn-toolkit2 2.3.2, rk3588).

Exact: both round towards zero; what is beyond int32 has no defined value in either form (ONNX operator specification).
"""

from __future__ import annotations

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.inferred import infer_types
from surgery.matching import Matched, is_one_of
from surgery.splice import Draft, splice

_FLOAT8 = "says how float8 saturates; int32 is none"
CAST = Matched("Cast", used=frozenset({"to"}), irrelevant={"saturate": _FLOAT8})

DECLARATION = Declaration(
    name="decompose_int32_casts",
    summary="cast float32 and bool to int32 by way of int64",
    exactness=Exact("both forms round towards zero"),
    after=frozenset({"decompose_missing_kernels", "normalise_double", "normalise_float32"}),
    matches=(CAST,),
)

UNCONVERTED = frozenset({ir.DataType.FLOAT, ir.DataType.BOOL})
"""Types that the toolkit does not convert to int32."""


def decompose_int32_casts() -> Pass:
    """The pass; its hits are Casts."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not any(_casts_to_int32(node) for node in model.graph):
            return Rewritten(model, 0)
        clone = model.clone()
        infer_types(clone)
        found = [node for node in clone.graph if _casts_to_int32(node) and _from(node) in UNCONVERTED]
        for node in found:
            draft = Draft()
            wide = draft.add("Cast", node.inputs[0], to=int(ir.DataType.INT64))
            splice(node, draft.nodes, [draft.add("Cast", wide, to=int(ir.DataType.INT32))], DECLARATION.name)
        return Rewritten(clone, len(found)) if found else Rewritten(model, 0)

    return Pass(DECLARATION, rewrite)


def _casts_to_int32(node: ir.Node) -> bool:
    return is_one_of(node, (CAST,)) and node.attributes["to"].as_int() == int(ir.DataType.INT32)


def _from(node: ir.Node) -> ir.DataType | None:
    return None if node.inputs[0] is None else node.inputs[0].dtype
