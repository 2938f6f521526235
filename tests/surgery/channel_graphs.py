"""Writes small graphs [1, C, STEPS] whose every sum is of small whole numbers, so that no order of it rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper

from surgery.declaration import Pass, Rewritten
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.convolutions import left_alone
from tests.surgery.graphs import check, serialised

STEPS = 5


class ChannelWriter:
    """Nodes, one after the other; each method returns the name of what it makes. Inputs: x [1, C, STEPS], and mask."""

    def __init__(self, channels: int = 4, opset: int = 17, seed: int = 3) -> None:
        self.sizes = {"x": channels, "mask": 1}
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, NDArray[Any]] = {}
        self.opset = opset
        self.random = np.random.default_rng(seed)

    def nodes_of(self, op: str, inputs: list[str], *channels: int, **attributes: Any) -> list[str]:
        """A node of several outputs, of so many channels each."""
        names = [f"{op.lower()}{len(self.nodes)}_{place}" for place in range(len(channels))]
        self.sizes.update(zip(names, channels, strict=True))
        self.nodes.append(helper.make_node(op, inputs, names, f"{op}{len(self.nodes)}", **attributes))
        return names

    def node(self, op: str, *inputs: str, channels: int | None = None, **attributes: Any) -> str:
        """A node of one output; as many channels as its first input has where nothing is said."""
        return self.nodes_of(op, list(inputs), channels or self.sizes[inputs[0]], **attributes)[0]

    def weight(self, values: Any, dtype: Any = np.float32) -> str:
        """A constant."""
        name = f"k{len(self.weights)}"
        self.weights[name] = np.asarray(values, dtype)
        self.sizes[name] = self.weights[name].shape[1] if self.weights[name].ndim > 1 else 1
        return name

    def flip(self, x: str) -> str:
        """The channels in reverse, as torch exports it."""
        bounds = [self.weight([value], np.int64) for value in (-1, np.iinfo(np.int64).min, 1, -1)]
        return self.node("Slice", x, *bounds)

    def pick(self, x: str, order: list[int]) -> str:
        """These channels, by Gather."""
        return self.node("Gather", x, self.weight(order, np.int64), channels=len(order), axis=1)

    def block(self, x: str, start: int, end: int) -> str:
        """These channels, by Slice."""
        bounds = [self.weight([value], np.int64) for value in (start, end, 1, 1)]
        return self.node("Slice", x, *bounds, channels=end - start)

    def halves(self, x: str, *sizes: int) -> list[str]:
        """The channels in parts, by Split; in two halves where no sizes are given."""
        parts = sizes or (self.sizes[x] // 2,) * 2
        return self.nodes_of("Split", [x, self.weight(parts, np.int64)], *parts, axis=1)

    def join(self, *parts: str) -> str:
        """All channels of `parts`, by Concat."""
        return self.node("Concat", *parts, channels=sum(self.sizes[part] for part in parts), axis=1)

    def whole(self, *shape: int) -> NDArray[Any]:
        """Whole numbers -2..2, two a row."""
        made = np.zeros((shape[0], int(np.prod(shape[1:]))))
        for row in made:
            row[self.random.permutation(len(row))[:2]] = self.random.choice([-2, -1, 1, 2], min(2, len(row)))
        return made.reshape(shape)

    def conv(self, x: str, channels: int = 4, group: int = 1, bias: bool = True, weight: str | None = None) -> str:
        """A convolution of three taps that keeps the length."""
        weight = weight or self.weight(self.whole(channels, self.sizes[x] // group, 3))
        more = [self.weight(self.random.integers(-3, 3, channels))] if bias else []
        return self.node("Conv", x, weight, *more, channels=channels, pads=[1, 1], group=group)

    def conv_transpose(self, x: str, channels: int = 4, group: int = 1, bias: bool = True) -> str:
        """A transposed convolution of three taps that keeps the length."""
        weight = self.weight(self.whole(self.sizes[x], channels // group, 3))
        more = [self.weight(self.random.integers(-3, 3, channels))] if bias else []
        return self.node("ConvTranspose", x, weight, *more, channels=channels, pads=[1, 1], group=group)

    def coupling(self, x: str) -> str:
        """One half from the other, as a flow has it."""
        first, second = self.halves(x)
        told = self.node("Mul", self.conv(self.node("Relu", self.conv(first)), 2), "mask")
        return self.join(first, self.node("Mul", self.node("Sub", second, told), "mask"))

    def finished(self, *outputs: str, steps: int | str = STEPS) -> ir.Model:
        """The model that gives `outputs`."""
        return model(
            self.nodes,
            [tensor("x", [1, self.sizes["x"], steps]), tensor("mask", [1, 1, steps])],
            [tensor(name, [1, self.sizes[name], steps]) for name in outputs],
            [constant(name, values, values.dtype) for name, values in self.weights.items()],
            opset=self.opset,
        )


def folded(bound: Pass, original: ir.Model, hits: int) -> ir.Model:
    """What `bound` makes of `original`: hits, no change of the given model, ONNX's checker, the same bits."""
    if hits == 0:
        left_alone(bound, original)
        return original
    before = serialised(original)
    done: Rewritten = bound.rewrite(original)
    assert (done.hits, done.refused) == (hits, ())
    assert serialised(original) == before
    assert_same_bits(original, done.model)
    return done.model


def assert_same_bits(original: ir.Model, made: ir.Model, seed: int = 8) -> None:
    """Both give the same, on whole numbers and a mask that ends early."""
    check(made)
    random = np.random.default_rng(seed)
    sizes = {value.name: value.shape for value in original.graph.inputs}
    assert sizes["x"] is not None
    channels = sizes["x"][1]
    assert isinstance(channels, int)
    mask = np.ones((1, 1, STEPS), np.float32)
    mask[..., -1] = 0
    feed = {"x": random.integers(-4, 5, (1, channels, STEPS)).astype(np.float32), "mask": mask}
    wanted, given = run(original, feed), run(made, feed)
    assert list(given) == list(wanted)
    for name, values in wanted.items():
        assert np.abs(values).max() < 1 << 24  # else fp32 rounds whole numbers
        np.testing.assert_array_equal(given[name], values)
