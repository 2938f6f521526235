from __future__ import annotations

import logging
import warnings

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

from models.tracing import OPSET, traced
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


def test_traced_graph_computes_what_the_module_does() -> None:
    got = run(made(), {"x": np.array([[1, 2, 3, 4]], np.float32), "z": np.array([[10]], np.float32)})
    assert got["y"].tolist() == [[12, 14, 16, 18]]
    assert got["last"].tolist() == [[4]]


def test_axis_that_is_dynamic_takes_any_length() -> None:
    length = torch.export.Dim("length", min=1)
    model = made(dynamic_shapes={"x": {1: length}, "z": None})
    got = run(model, {"x": np.arange(7, dtype=np.float32)[None], "z": np.zeros((1, 1), np.float32)})
    assert got["y"].tolist() == [[0, 2, 4, 6, 8, 10, 12]]


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
