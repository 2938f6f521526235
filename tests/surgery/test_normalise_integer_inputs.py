"""Integer inputs of types that an engine cannot have become wider."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.declaration import Recast
from surgery.normalise_integer_inputs import normalise_integer_inputs
from tests.gates.small_graphs import chain, model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised

NARROW: dict[int, str] = {
    TensorProto.UINT8: "int32",
    TensorProto.INT16: "int32",
    TensorProto.UINT16: "int32",
    TensorProto.UINT32: "int64",
    TensorProto.UINT64: "int64",
}


def cast(kind: int, *targets: int) -> ir.Model:
    """n cast to each of `targets`, and that to float32."""
    nodes, outputs = [], []
    for target in targets:
        nodes.append(helper.make_node("Cast", ["n"], [f"c{target}"], f"to{target}", to=target))
        nodes.append(helper.make_node("Cast", [f"c{target}"], [f"y{target}"], f"real{target}", to=TensorProto.FLOAT))
        outputs.append(tensor(f"y{target}", [2, 3]))
    return model(nodes, [tensor("n", [2, 3], kind)], outputs)


TARGETS = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8)


@pytest.mark.parametrize("kind", NARROW)
def test_normalise_integer_inputs_computes_the_same_when_casts_read_the_input(kind: int) -> None:
    original = cast(kind, *TARGETS)
    before = serialised(original)
    done = normalise_integer_inputs().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    assert serialised(original) == before
    check(done.model)
    assert done.interface.inputs == (Recast("n", (2, 3), NARROW[kind]),)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    values = np.array([[0, 1, 2], [127, np.iinfo(dtype).max // 2, 255]]).astype(dtype)
    wanted = run(original, {"n": values})
    made = run(done.model, {"n": values.astype(NARROW[kind])})
    assert all(np.array_equal(wanted[name], made[name]) for name in wanted)


def test_normalise_integer_inputs_keeps_negative_values_when_they_are_of_16_bits() -> None:
    done = normalise_integer_inputs().rewrite(cast(TensorProto.INT16, TensorProto.FLOAT))
    values = np.array([[-32768, -1, 0], [1, 2, 32767]], np.int32)
    assert np.array_equal(run(done.model, {"n": values})["y1"], values.astype(np.float32))


@pytest.mark.parametrize(
    "kind", [TensorProto.BOOL, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT]
)
def test_normalise_integer_inputs_returns_the_model_itself_when_an_engine_can_have_the_type(kind: int) -> None:
    made = cast(kind, TensorProto.FLOAT)
    done = normalise_integer_inputs().rewrite(made)
    assert done.model is made
    assert (done.hits, done.refused) == (0, ())


@pytest.mark.parametrize("target", [TensorProto.INT32, TensorProto.INT64])
def test_normalise_integer_inputs_makes_an_int8_wider_when_a_cast_makes_an_index_of_it(target: int) -> None:
    original = cast(TensorProto.INT8, target, TensorProto.FLOAT)
    done = normalise_integer_inputs().rewrite(original)
    assert (done.hits, done.interface.inputs) == (1, (Recast("n", (2, 3), "int32"),))
    check(done.model)
    values = np.array([[-128, -1, 0], [1, 2, 127]], np.int8)
    wanted, made = run(original, {"n": values}), run(done.model, {"n": values.astype(np.int32)})
    assert all(np.array_equal(wanted[name], made[name]) for name in wanted)


def test_normalise_integer_inputs_leaves_an_int8_alone_when_more_than_casts_read_it() -> None:
    made = cast(TensorProto.INT8, TensorProto.INT64)
    made.graph.append(ir.node("Neg", [made.graph.inputs[0]], name="negative"))
    done = normalise_integer_inputs().rewrite(made)
    assert done.model is made
    assert (done.hits, done.refused) == (0, ())


def test_normalise_integer_inputs_returns_the_model_itself_when_there_are_no_integers() -> None:
    made = chain("Relu")
    assert normalise_integer_inputs().rewrite(made).model is made
