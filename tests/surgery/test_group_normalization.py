"""GroupNormalization of both opsets, against the specification's formula in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.group_normalization import EPSILON, group_normalization
from surgery.splice import Draft, splice
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check

GROUPS, CHANNELS = 3, 6


def formula(x: Array, scale: Array, bias: Array, epsilon: float) -> Array:
    """Mean and variance of each group; scale and bias of each group, or of each channel."""
    grouped = x.astype(np.float64).reshape(x.shape[0], GROUPS, -1)
    centred = grouped - grouped.mean(axis=-1, keepdims=True)
    normal = (centred / np.sqrt(grouped.var(axis=-1, keepdims=True) + epsilon)).reshape(x.shape)
    column = (-1, *[1] * (x.ndim - 2))
    factors = [np.repeat(part, CHANNELS // len(part)).reshape(column) for part in (scale, bias)]
    made: Array = normal * factors[0] + factors[1]
    return made


@pytest.mark.parametrize("shape", [(1, CHANNELS, 10), (2, CHANNELS, 4, 5)])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("attributes", [{}, {"epsilon": 0.25}], ids=["default", "epsilon"])
@pytest.mark.parametrize("static", [True, False], ids=["static", "open"])
def test_group_normalization_is_the_formula_when_it_is_an_instance_normalization(
    shape: tuple[int, ...], per_channel: bool, attributes: dict[str, Any], static: bool
) -> None:
    random = np.random.default_rng(3)
    scale, bias = random.standard_normal((2, CHANNELS if per_channel else GROUPS)).astype(np.float32)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], "norm", num_groups=GROUPS, **attributes)
    sizes: tuple[int | str, ...] = shape if static else ("n", *shape[1:-1], "t")
    made = model([node], [tensor("x", sizes)], [tensor("y", sizes)], [constant("s", scale), constant("b", bias)])
    draft = Draft()
    result = group_normalization(made.graph[0], draft, per_channel)
    splice(made.graph[0], draft.nodes, [result], "test")
    check(made)
    x = (random.standard_normal(shape) * 2 + 5).astype(np.float32)
    wanted = formula(x, scale, bias, attributes.get("epsilon", EPSILON))
    np.testing.assert_allclose(run(made, {"x": x})["y"], wanted, rtol=1e-4, atol=1e-5)


def test_group_normalization_works_in_the_inputs_type_when_it_is_double() -> None:
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], "norm", num_groups=GROUPS)
    kind = int(ir.DataType.DOUBLE)
    inputs = [tensor("x", [1, CHANNELS, 4], kind), tensor("s", [CHANNELS], kind), tensor("b", [CHANNELS], kind)]
    made = model([node], inputs, [tensor("y", [1, CHANNELS, 4], kind)])
    draft = Draft()
    splice(made.graph[0], draft.nodes, [group_normalization(made.graph[0], draft, per_channel=True)], "test")
    check(made)
