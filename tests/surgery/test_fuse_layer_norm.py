"""Layer normalisations, against numpy and onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.declaration import EXACT_PARITY_DB
from surgery.fuse_layer_norm import CHANGED, LOWEST, SINCE, fuse_layer_norm
from tests.onnx_runs import run, snr_db
from tests.surgery.norm_graphs import DIVISIONS, MEANS, SQUARES, Steps, affine, normalise, normalised
from tests.surgery.one_operator import equal_after, left_alone, only, operators

PASS = fuse_layer_norm()


def last(shape: tuple[int, ...] = (2, 5, 8), opset: int = 15, **spelling: str) -> ir.Model:
    """Over the last axis, with scale and shift."""
    steps = Steps(opset)
    affine(steps, normalise(steps, "x", [-1], shape[-1], **spelling), shape[-1:])  # type: ignore[arg-type] # texts
    return steps.model({"x": shape}, shape)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("square", SQUARES)
@pytest.mark.parametrize("division", DIVISIONS)
def test_every_spelling_is_one_operator(division: str, square: str, mean: str) -> None:
    made = equal_after(PASS, last(division=division, square=square, mean=mean))
    assert operators(made) == ["LayerNormalization"]
    assert list(made.graph.initializers) == [value.name for value in made.graph[0].inputs[1:] if value is not None]
    assert made.opset_imports[""] == SINCE


@pytest.mark.parametrize("opset", [13, 16, 17, 18, 19])
@pytest.mark.parametrize("shape", [(3, 8), (2, 5, 8), (1, 2, 3, 8), (1, 1, 1, 2)])
def test_it_is_numpys_when_the_last_axis_is_normalised(shape: tuple[int, ...], opset: int) -> None:
    steps = Steps(opset)
    affine(steps, normalise(steps, "x", [-1], epsilon=1e-3), shape[-1:])
    scale, shift = (onnx.numpy_helper.to_array(weight) for weight in steps.weights[-2:])
    made = PASS.rewrite(steps.model({"x": shape}, shape)).model
    assert made.opset_imports[""] == max(opset, SINCE)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = normalised(x, (-1,), 1e-3) * scale + shift
    assert snr_db(wanted, run(made, {"x": x})["y"]) >= EXACT_PARITY_DB


@pytest.mark.parametrize("sizes", [(6, 1), (1, 6, 1)])
def test_channels_are_turned_to_the_end_when_they_are_normalised(sizes: tuple[int, ...]) -> None:
    steps = Steps()
    affine(steps, normalise(steps, "x", [1]), sizes)
    made = equal_after(PASS, steps.model({"x": (2, 6, 9)}, (2, 6, 9)))
    assert operators(made) == ["Transpose", "LayerNormalization", "Transpose"]


def test_channels_of_images_are_turned_too() -> None:
    steps = Steps()
    affine(steps, normalise(steps, "x", [1]), (6, 1, 1))
    made = equal_after(PASS, steps.model({"x": (2, 6, 3, 4)}, (2, 6, 3, 4)))
    assert operators(made) == ["Transpose", "LayerNormalization", "Transpose"]


@pytest.mark.parametrize(("scaled", "shifted", "inputs"), [(True, False, 2), (False, True, 3)])
def test_one_of_scale_and_shift_is_enough(scaled: bool, shifted: bool, inputs: int) -> None:
    steps = Steps()
    affine(steps, normalise(steps, "x", [-1]), (8,), scaled, shifted)
    made = equal_after(PASS, steps.model({"x": (2, 5, 8)}, (2, 5, 8)))
    assert len(only(made, "LayerNormalization").inputs) == inputs


@pytest.mark.parametrize(("shape", "axis"), [((3, 8), -1), ((1, 2, 3, 8), 3), ((2, 6, 9), 1)])
def test_neither_is_needed_where_the_axis_is_no_steps(shape: tuple[int, ...], axis: int) -> None:
    steps = Steps()
    normalise(steps, "x", [axis])
    assert "LayerNormalization" in operators(equal_after(PASS, steps.model({"x": shape}, shape)))


def test_a_scale_along_other_axes_stays_outside() -> None:
    steps = Steps()
    affine(steps, normalise(steps, "x", [1]), (1, 1, 9))
    made = equal_after(PASS, steps.model({"x": (2, 6, 9)}, (2, 6, 9)))
    assert operators(made) == ["Transpose", "LayerNormalization", "Transpose", "Mul", "Add"]


def test_open_sizes_are_no_hindrance_when_that_of_the_axis_is_known() -> None:
    steps = Steps()
    affine(steps, normalise(steps, "x", [-1]), (8,))
    original = steps.model({"x": ("n", "t", 8)}, ("n", "t", 8))
    done = PASS.rewrite(original)
    assert (done.hits, operators(done.model)) == (1, ["LayerNormalization"])
    for shape in [(1, 1, 8), (2, 7, 8)]:
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        assert snr_db(run(original, {"x": x})["y"], run(done.model, {"x": x})["y"]) >= EXACT_PARITY_DB


def test_two_in_a_row_are_two_operators() -> None:
    steps = Steps()
    first = affine(steps, normalise(steps, "x", [-1]), (8,))
    affine(steps, normalise(steps, first, [-1]), (8,))
    made = equal_after(PASS, steps.model({"x": (2, 5, 8)}, (2, 5, 8)), hits=2)
    assert operators(made) == ["LayerNormalization"] * 2


def test_weights_that_others_read_stay() -> None:
    steps = Steps()
    made = affine(steps, normalise(steps, "x", [-1]), (8,))
    steps.add("Mul", made, steps.weights[-1].name)
    assert operators(equal_after(PASS, steps.model({"x": (2, 5, 8)}, (2, 5, 8)))) == ["LayerNormalization", "Mul"]


def test_mean_of_ten_deviations_keeps_the_bound() -> None:
    original = last((1, 16, 512))
    x = np.random.default_rng(2).standard_normal((1, 16, 512)).astype(np.float32) + 10
    equal_after(PASS, original, feed={"x": x})


def _steps_over(shape: tuple[int, ...] = (2, 5, 8), axes: tuple[int, ...] = (-1,), opset: int = 15) -> Steps:
    steps = Steps(opset)
    affine(steps, normalise(steps, "x", axes), shape[-1:])
    return steps


def _read_elsewhere(place: int) -> ir.Model:
    """The output of node `place` is read by another node too."""
    steps = _steps_over()
    value, made = steps.nodes[place].output[0], steps.nodes[-1].output[0]
    steps.add("Add", made, value)
    return steps.model({"x": (2, 5, 8)}, (2, 5, 8))


@pytest.mark.parametrize("place", range(6), ids=["mean", "centred", "square", "mean square", "variance", "deviation"])
def test_chain_is_left_alone_when_another_reads_a_part_of_it(place: int) -> None:
    left_alone(PASS, _read_elsewhere(place))


def test_chain_is_left_alone_when_a_part_of_it_is_an_output() -> None:
    original = _steps_over().proto({"x": (2, 5, 8)}, (2, 5, 8))
    original.graph.output.append(helper.make_tensor_value_info("t0", TensorProto.FLOAT, [2, 5, 1]))
    left_alone(PASS, ir.from_proto(original))


def test_chain_is_left_alone_when_a_branch_captures_a_part_of_it() -> None:
    steps = _steps_over()
    branch = helper.make_graph(
        [helper.make_node("Identity", ["t1"], ["b"])], "branch", [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [2, 5, 8])],
    )  # fmt: skip
    truth = steps.constant(True, np.bool_)
    steps.add("Add", steps.nodes[-1].output[0], steps.add("If", truth, then_branch=branch, else_branch=branch))
    left_alone(PASS, steps.model({"x": (2, 5, 8)}, (2, 5, 8)))


def _changed(place: int, **changes: object) -> ir.Model:
    original = _steps_over().proto({"x": (2, 5, 8)}, (2, 5, 8))
    for name, value in changes.items():
        if name == "domain":
            original.opset_import.append(helper.make_opsetid(str(value), 1))
            original.graph.node[place].domain = str(value)
        else:
            setattr(original.graph.node[place], name, value)
    return ir.from_proto(original)


@pytest.mark.parametrize("place", range(7))
def test_chain_is_left_alone_when_a_part_is_of_another_domain(place: int) -> None:
    left_alone(PASS, _changed(place, domain="com.example"))


def _other(epsilon: float = 1e-5, power: float = 2.0) -> ir.Model:
    steps = Steps()
    off = steps.add("Sub", "x", steps.reduced("ReduceMean", "x", [-1]))
    mean = steps.reduced("ReduceMean", steps.add("Pow", off, steps.constant(power)), [-1])
    made = steps.add("Div", off, steps.add("Sqrt", steps.add("Add", mean, steps.constant(epsilon))))
    affine(steps, made, (8,))
    return steps.model({"x": (2, 5, 8)}, (2, 5, 8))


def _crossed(axes: tuple[int, int]) -> ir.Model:
    """A mean over one axis, a square over another."""
    steps = Steps()
    off = steps.add("Sub", "x", steps.reduced("ReduceMean", "x", [axes[0]]))
    mean = steps.reduced("ReduceMean", steps.add("Mul", off, off), [axes[1]])
    affine(steps, steps.add("Div", off, steps.add("Sqrt", steps.add("Add", mean, steps.constant(1e-5)))), (8,))
    return steps.model({"x": (2, 5, 8)}, (2, 5, 8))


def _rms() -> ir.Model:
    steps = Steps()
    mean = steps.reduced("ReduceMean", steps.add("Mul", "x", "x"), [-1])
    affine(steps, steps.add("Div", "x", steps.add("Sqrt", steps.add("Add", mean, steps.constant(1e-5)))), (8,))
    return steps.model({"x": (2, 5, 8)}, (2, 5, 8))


def _summed(count: float) -> ir.Model:
    steps = Steps()
    affine(steps, normalise(steps, "x", [-1], count, mean="ReduceSum /"), (8,))  # type: ignore[arg-type] # wrong count
    return steps.model({"x": (2, 5, 8)}, (2, 5, 8))


def _double() -> ir.Model:
    steps = Steps()
    affine(steps, normalise(steps, "x", [-1]), (8,))
    original = steps.proto({"x": (2, 5, 8)}, (2, 5, 8), dtype=TensorProto.DOUBLE)
    for weight in original.graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight).astype(float), weight.name))
    return ir.from_proto(original)


def _roi() -> ir.Model:
    """With an operator that opset 16 changed."""
    steps = _steps_over()
    made = steps.nodes[-1].output[0]
    shape = steps.constant([1, 2, 5, 8], np.int64)
    image = steps.add("Reshape", made, shape)
    boxes, batch = steps.constant([[0, 0, 4, 4]]), steps.constant([0], np.int64)
    steps.add("RoiAlign", image, boxes, batch, output_height=2, output_width=2)
    return steps.model({"x": (2, 5, 8)}, (1, 2, 2, 2))


@pytest.mark.parametrize(
    "original",
    [
        _other(power=3.0),
        _other(epsilon=-1e-5),
        _crossed((1, 2)),
        _rms(),
        _summed(7),
        _double(),
        _roi(),
        _steps_over(axes=(-2, -1)).model({"x": (2, 5, 8)}, (2, 5, 8)),
        _steps_over((2, 3, 5, 8), (2,)).model({"x": (2, 3, 5, 8)}, (2, 3, 5, 8)),
        _steps_over().model({"x": (2, 5, "c")}, (2, 5, 8)),
        last(opset=12),
        last((2, 5, 1)),
        _steps_over((2, 1, 8), (1,)).model({"x": (2, 1, 8)}, (2, 1, 8)),
    ],
    ids=[
        "cube", "negative epsilon", "crossed axes", "rms", "wrong count", "double", "changed operator", "two axes",
        "a middle axis", "open axis", "opset 12", "one number", "one channel",
    ],
)  # fmt: skip
def test_graph_is_left_alone_when_it_is_no_layer_norm_or_cannot_be_one(original: ir.Model) -> None:
    left_alone(PASS, original)


@pytest.mark.parametrize("sizes", [(6, 1), None])
def test_last_of_three_axes_is_left_alone_when_it_may_be_steps(sizes: tuple[int, ...] | None) -> None:
    steps = Steps()
    made = normalise(steps, "x", [-1])
    if sizes:
        affine(steps, made, sizes)
    left_alone(PASS, steps.model({"x": (2, 6, 9)}, (2, 6, 9)))


def test_operators_that_opset_17_changed_are_those_of_other_meaning() -> None:
    """Of what stands in both, a newer one has further types, or attributes and outputs that may be left out."""
    changed = set()
    for name in {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}:
        if not onnx.defs.has(name, LOWEST, "") or not onnx.defs.has(name, SINCE, ""):
            continue
        old, new = (onnx.defs.get_schema(name, opset, "") for opset in (LOWEST, SINCE))
        added = set(new.attributes) ^ set(old.attributes)
        neutral = {"allowzero", "layout", "reduction", "start", "end"}  # absent, they ask for what was before
        if len(new.outputs) != len(old.outputs) or not added <= neutral:
            changed.add(name)
    assert changed == CHANGED
