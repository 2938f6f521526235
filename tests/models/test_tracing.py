from __future__ import annotations

import gc
import logging
import warnings
import weakref

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

from models.tracing import OPSET, traced, traced_by_script
from tests.onnx_runs import run


class Shift(nn.Module):
    """y = 2 x + z, and x's last number."""

    def forward(self, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """[1, N], [1, 1] -> [1, N], [1, 1]."""
        return 2 * x + z, x[:, -1:]


class Broken(nn.Module):
    """Cannot be traced: what it does depends on a number."""

    def forward(self, x: Tensor) -> Tensor:
        """[1]"""
        return x if bool(x.sum() > 0) else -x


EXAMPLE = (torch.zeros(1, 4), torch.zeros(1, 1))


def made(**options: object) -> ir.Model:
    return traced(Shift(), EXAMPLE, ["x", "z"], ["y", "last"], **options)


def test_traced_graph_has_the_names_the_shapes_and_the_opset() -> None:
    model = made()
    assert [(value.name, tuple(value.shape or ())) for value in model.graph.inputs] == [("x", (1, 4)), ("z", (1, 1))]
    assert [value.name for value in model.graph.outputs] == ["y", "last"]
    assert model.opset_imports[""] == OPSET == 18
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


def test_weights_of_what_was_traced_go_with_it() -> None:
    module = nn.Sequential(nn.Conv1d(4, 4, 3), nn.Mish(), nn.Conv1d(4, 4, 1))
    model = traced(module, (torch.zeros(1, 4, 8),), ["x"], ["y"])
    weights = [weakref.ref(weight) for weight in module.parameters()]
    held = [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]
    assert len(held) >= len(weights)
    assert all(np.isfinite(tensor.numpy()).all() for tensor in held)
    del module, model, held
    gc.collect()
    assert [weight() for weight in weights] == [None] * 4


def test_traced_graph_computes_what_the_module_does() -> None:
    got = run(made(), {"x": np.array([[1, 2, 3, 4]], np.float32), "z": np.array([[10]], np.float32)})
    assert got["y"].tolist() == [[12, 14, 16, 18]]
    assert got["last"].tolist() == [[4]]


def test_axis_that_is_dynamic_takes_any_length() -> None:
    length = torch.export.Dim("length", min=1)
    model = made(dynamic_shapes={"x": {1: length}, "z": None})
    got = run(model, {"x": np.arange(7, dtype=np.float32)[None], "z": np.zeros((1, 1), np.float32)})
    assert got["y"].tolist() == [[0, 2, 4, 6, 8, 10, 12]]


class Nested(nn.Module):
    """A module in another, that reads a size."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        """[1, N, 2] -> [1, N, 2]."""
        return torch.cat([self.inner(x), torch.zeros_like(x)], dim=1)


def test_older_exporter_names_modules_and_weights_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    module, x = Nested(), np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    axes = {"x": {1: "length"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = traced_by_script(module, (torch.zeros(1, 5, 2),), ["x"], ["y"], 17, axes)
    assert capfd.readouterr() == ("", "")
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    assert model.opset_imports[""] == 17
    assert "inner.bias" in model.graph.initializers
    names = {str(node.name) for node in model.graph}
    assert {"/inner/Add", "/Shape", "/Concat"} <= names
    got = run(model, {"x": x})["y"]
    weight, bias = (part.detach().numpy() for part in module.inner.parameters())
    np.testing.assert_allclose(got[:, :3], x @ weight.T + bias, rtol=1e-5)
    assert got.shape == (1, 6, 2)
    assert not got[:, 3:].any()


def test_exporter_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("level", [logging.NOTSET, logging.WARNING])
def test_loggers_level_is_left_as_it_was_even_where_tracing_fails(level: int) -> None:
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(level)
    try:
        made()
        assert logger.level == level
        with pytest.raises(Exception, match="Failed to export"):
            traced(Broken(), (torch.ones(1),), ["x"], ["y"])
        assert logger.level == level
    finally:
        logger.setLevel(before)
