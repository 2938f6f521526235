"""Write a square as a product.

Before:  Pow(x, 2), the exponent one constant number
After:   Mul(x, x)

It pays on no target: Pow(x, 2) is one layer of the NPU that reads x once, Mul(x, x) one that reads it twice. Modelled
ms between two convolutions, [1, 128, 1200] (measured, 2.3.2; the simulator has both right, at the same SNR):

                rk3588, rk3576   rk3562   rk3566, rk3568
    Pow(x, 2)        .749          .979       4.440
    Mul(x, x)        .809         1.039       4.500

It is for a board on which Pow is wrong: a public report of 2022 has it so on rk3568, right in the simulator
(github.com/rockchip-linux/rknn-toolkit2, issue 84; its maintainers wrote that the next beta mends it). No board was
available here. So it runs where it is asked for by name (`rknn-tts surgery --pass rewrite_squares`), and by itself
nowhere.

Left alone: another exponent, one that is computed or makes the tensor larger, what is not float32 or of unknown rank.

Exact: the definition of the power.
"""

from __future__ import annotations

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass
from surgery.graph import input_at
from surgery.matching import is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.norm_chains import POW, number_of, put_in_place
from surgery.splice import Draft

DECLARATION = Declaration(
    name="rewrite_squares",
    summary="Pow(x, 2) as Mul(x, x), for a board whose Pow is wrong; it costs more",
    exactness=Exact("x to the power of 2 is x times x"),
    after=frozenset({"fold_constants", "fuse_instance_norm", "fuse_layer_norm", "normalise_float32", "rewrite_sines"}),
    matches=(POW,),
    pays_on=frozenset(),
)


def rewrite_squares() -> Pass:
    """The pass; its hits are the powers."""
    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _may_be, _plan, _write))


def _may_be(node: ir.Node) -> bool:
    return is_one_of(node, (POW,))


def _plan(node: ir.Node) -> ir.Node | None:
    value = input_at(node, 0)
    if value is None or value.dtype is not ir.DataType.FLOAT or value.shape is None:
        return None
    return node if number_of(input_at(node, 1), len(value.shape)) == 2 else None


def _write(node: ir.Node) -> None:
    draft = Draft()
    put_in_place(node, (), draft, draft.add("Mul", node.inputs[0], node.inputs[0]), DECLARATION.name)
