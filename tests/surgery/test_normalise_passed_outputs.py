from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.normalise_passed_outputs import normalise_passed_outputs
from tests.gates.small_graphs import constant, model, proto, tensor
from tests.onnx_runs import run
from tests.surgery.interfaces import applied, left_alone, names, node, noise, operators, same

SHAPE = [1, 4, 9]
X, Y = tensor("x", SHAPE), tensor("y", SHAPE)
TANH = node("Tanh", "x", "y")
CONSTANTS = [
    constant("one", 1.0),
    constant("ones", np.ones((4, 1))),
    constant("almost", 1.0001),
    constant("zero", 0.0),
    constant("shape", SHAPE, np.int64),
    constant("flat", [4, 9], np.int64),
    constant("nothing", [0] * 6, np.int64),
    constant("shift", [0, 0, 1, 0, 0, -1], np.int64),
    constant("ones3", [1, 1, 1], np.int64),
    constant("from", [0], np.int64),
    constant("end", [99], np.int64),
    constant("last", [2], np.int64),
    constant("step", [1], np.int64),
    constant("back", [-1], np.int64),
    constant("start", [-100], np.int64),
]


def second(*nodes: onnx.NodeProto, shape: Any = SHAPE, dtype: int = TensorProto.FLOAT, first: str = "y") -> ir.Model:
    """y = tanh(x), and a second output z that `nodes` make."""
    return model([TANH, *nodes], [X], [tensor(first, SHAPE), tensor("z", shape, dtype)], CONSTANTS)


REPEATS = {
    "Identity": second(node("Identity", "y", "z")),
    "two Identities": second(node("Identity", "y", "a"), node("Identity", "a", "z")),
    "Dropout": second(node("Dropout", "y", "z")),
    "Mul by one": second(node("Mul", "y one", "z")),
    "one by it": second(node("Mul", "one y", "z")),
    "Mul by ones": second(node("Mul", "y ones", "z")),
    "Div by one": second(node("Div", "y one", "z")),
    "Add of zero": second(node("Add", "zero y", "z")),
    "Sub of zero": second(node("Sub", "y zero", "z")),
    "Pow of one": second(node("Pow", "y one", "z")),
    "Reshape to its shape": second(node("Reshape", "y shape", "z")),
    "Reshape there and back": second(node("Reshape", "y flat", "a"), node("Reshape", "a shape", "z")),
    "Unsqueeze and Squeeze": second(node("Unsqueeze", "y from", "a"), node("Squeeze", "a from", "z")),
    "Transpose there and back": second(
        node("Transpose", "y", "a", perm=[1, 2, 0]), node("Transpose", "a", "z", perm=[2, 0, 1])
    ),
    "Transpose backwards twice": second(node("Transpose", "y", "a"), node("Transpose", "a", "z")),
    "Transpose of nothing": second(node("Transpose", "y", "z", perm=[0, 1, 2])),
    "Transpose of an axis of one": second(node("Transpose", "y", "a", perm=[1, 0, 2]), node("Reshape", "a shape", "z")),
    "Expand to its shape": second(node("Expand", "y shape", "z")),
    "Tile once": second(node("Tile", "y ones3", "z")),
    "Cast to its type": second(node("Cast", "y", "z", to=TensorProto.FLOAT)),
    "Concat of one": second(node("Concat", "y", "z", axis=1)),
    "Sum of one": second(node("Sum", "y", "z")),
    "Pad of nothing": second(node("Pad", "y nothing", "z")),
    "Slice of all": second(node("Slice", "y from end last step", "z")),
    "behind one inner tensor": model(
        [node("Tanh", "x", "t"), node("Identity", "t", "y"), node("Identity", "t", "z")], [X], [Y, tensor("z", SHAPE)]
    ),
    "listed before": model([TANH, node("Identity", "y", "z")], [X], [tensor("z", SHAPE), Y]),
}


@pytest.mark.parametrize("name", REPEATS)
def test_normalise_passed_outputs_computes_an_output_again_when_it_repeats_another(name: str) -> None:
    original = REPEATS[name]
    done = applied(normalise_passed_outputs(), original)
    assert done.hits == 1
    assert operators(done.model).count("LeakyRelu") == 1
    assert names(done.model.graph.outputs) == names(original.graph.outputs)
    copy = next(made for made in done.model.graph if made.op_type == "LeakyRelu")
    assert copy.name == "z_normalise_passed_outputs"
    assert copy.outputs[0].is_graph_output()
    same(original, done.model, {"x": noise(*SHAPE)})


def test_normalise_passed_outputs_copies_each_when_three_repeat_one_another_and_one_is_read_on() -> None:
    nodes = [TANH, node("Identity", "y", "z"), node("Mul", "y one", "v"), node("Neg", "z", "u")]
    outputs = [Y, tensor("z", SHAPE), tensor("v", SHAPE), tensor("u", SHAPE)]
    original = model(nodes, [X], outputs, CONSTANTS)
    done = applied(normalise_passed_outputs(), original)
    assert (done.hits, operators(done.model).count("LeakyRelu")) == (2, 2)
    same(original, done.model, {"x": noise(*SHAPE)})


def test_normalise_passed_outputs_keeps_negative_zero_infinity_and_nan() -> None:
    done = applied(normalise_passed_outputs(), model(
        [node("Neg", "x", "y"), node("Identity", "y", "z")], [tensor("x", [5])], [tensor("y", [5]), tensor("z", [5])]
    ))  # fmt: skip
    x = np.array([0.0, np.inf, -np.inf, np.nan, 1e-45], np.float32)
    z = run(done.model, {"x": x})["z"]
    np.testing.assert_array_equal(z, -x)
    assert np.signbit(z[0])


def test_normalise_passed_outputs_lists_an_output_once_when_it_is_listed_twice() -> None:
    original = ir.from_proto(proto([TANH], [X], [Y, Y, Y]))
    done = applied(normalise_passed_outputs(), original)
    assert (done.hits, names(done.model.graph.outputs), operators(done.model)) == (2, ["y"], ["Tanh"])


OTHERS = {
    "one output": model([TANH], [X], [Y]),
    "inner tensor": second(node("Neg", "y", "z")),
    "same operator": second(node("Tanh", "x", "z")),
    "another shape": second(node("Reshape", "y flat", "z"), shape=[4, 9]),
    "twice another shape": model(
        [TANH, node("Reshape", "y flat", "z"), node("Reshape", "y flat", "v")], [X],
        [Y, tensor("z", [4, 9]), tensor("v", [4, 9])], CONSTANTS,
    ),
    "another type": second(node("Cast", "y", "z", to=TensorProto.FLOAT16), dtype=TensorProto.FLOAT16),
    "turned twice": second(
        node("Transpose", "y", "a", perm=[1, 2, 0]), node("Transpose", "a", "z", perm=[1, 2, 0]), shape=[9, 1, 4]
    ),
    "to half and back": second(
        node("Cast", "y", "a", to=TensorProto.FLOAT16), node("Cast", "a", "z", to=TensorProto.FLOAT)
    ),
    "square turned": model(
        [TANH, node("Transpose", "y", "z")], [tensor("x", [4, 4])], [tensor("y", [4, 4]), tensor("z", [4, 4])]
    ),
    "almost one": second(node("Mul", "y almost", "z")),
    "one less": second(node("Sub", "y one", "z")),
    "one by": second(node("Div", "one y", "z")),
    "zero less it": second(node("Sub", "zero y", "z")),
    "backwards": second(node("Slice", "y back start last back", "z")),
    "shifted": second(node("Pad", "y shift", "z")),
    "Concat of two": second(node("Concat", "y y", "z", axis=1), shape=[1, 8, 9]),
    "an input behind Identity": second(node("Identity", "x", "z")),
    "two inputs behind Identity": model(
        [node("Identity", "x", "y"), node("Identity", "x", "z")], [X], [Y, tensor("z", SHAPE)]
    ),
    "another domain": second(node("Identity", "y", "z", domain="com.example")),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_normalise_passed_outputs_leaves_a_graph_alone_when_every_output_is_its_own(name: str) -> None:
    left_alone(normalise_passed_outputs(), OTHERS[name])
