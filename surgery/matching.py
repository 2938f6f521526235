"""What a pass makes of the operators it matches: every ONNX attribute as used, required or irrelevant.

Rules elsewhere silently ignore Gemm's beta or Pad's dilations, and change the result. A test holds these lists against
ONNX's own operator schemas.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

ONNX_DOMAINS = ("", "ai.onnx")
"""The two spellings of ONNX's own domain; an operator of that name in another is something else."""


@dataclass(frozen=True)
class Matched:
    """An operator that a pass matches.

    Attributes:
        op: its type, in ONNX's own domain.
        used: attributes whose value enters the algebra or a precondition.
        required: attributes that must have one value or be absent, and that value.
        irrelevant: attributes that may have any value, and why.
    """

    op: str
    used: frozenset[str] = frozenset()
    required: Mapping[str, str] = field(default_factory=dict)
    irrelevant: Mapping[str, str] = field(default_factory=dict)

    def attributes(self) -> list[str]:
        """Every attribute that is listed, sorted."""
        return sorted([*self.used, *self.required, *self.irrelevant])


def is_one_of(node: ir.Node, operators: Collection[Matched]) -> bool:
    """Whether `node` is an operator of `operators`."""
    return node.domain in ONNX_DOMAINS and any(node.op_type == matched.op for matched in operators)


def opset_of(part: ir.Model | ir.Graph | ir.Function | ir.Node) -> int:
    """The opset of ONNX's own operators in `part`, under either spelling of their domain; of a node, in its graph."""
    holder = part.graph if isinstance(part, ir.Node) else part
    assert holder is not None
    return max(holder.opset_imports.get(domain, 0) for domain in ONNX_DOMAINS)
