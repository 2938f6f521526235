"""Strided average pools as convolutions: equal in onnxruntime, alone and with the pass that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from contracts.convolution_fields import STRIDE_LIMIT
from surgery.declaration import EXACT_PARITY_DB
from surgery.rewrite_strided_average_pool import rewrite_strided_average_pool
from surgery.rewrite_strided_conv import rewrite_strided_conv
from tests.onnx_runs import run, snr_db
from tests.surgery.convolutions import feed_of, left_alone, one_node, rewritten, the_node

PASS = rewrite_strided_average_pool()


def pool(shape: list[int | str], kernel: list[int], strides: list[int], **options: Any) -> ir.Model:
    return one_node("AveragePool", shape, kernel_shape=kernel, strides=strides, **options)


OVERFLOWS = [
    pool([1, 6, 100], [9], [9]),
    pool([1, 6, 100], [3], [9]),
    pool([1, 6, 1000], [60], [30]),
    pool([1, 1, 2400], [300], [300]),
    pool([3, 4, 100], [22], [11], count_include_pad=1),
    pool([1, 6, 100], [9], [9], auto_pad="VALID", opset=11),
    pool([1, 6, 100], [4], [9], dilations=[3], opset=19),
    pool([1, 6, 40, 41], [3, 4], [9, 11]),
    pool([2, 3, 40, 41], [17, 2], [17, 2], pads=[0, 0, 0, 0]),
]


@pytest.mark.parametrize("original", OVERFLOWS, ids=lambda made: str(list(the_node(made).attributes.values())))
def test_rewrite_strided_average_pool_is_equal_when_the_stride_overflows(original: ir.Model) -> None:
    made = rewritten(PASS, original)
    assert "Conv" in [node.op_type for node in made.graph]
    followed = rewrite_strided_conv().rewrite(made)
    strides = [node.attributes.get_ints("strides") for node in followed.model.graph if node.op_type == "Conv"]
    assert max(stride for of_node in strides for stride in of_node or ()) <= STRIDE_LIMIT
    feed = feed_of(original)
    assert snr_db(run(original, feed)["y"], run(followed.model, feed)["y"]) >= EXACT_PARITY_DB


@pytest.mark.parametrize(
    "original",
    [
        pool([1, 6, 90], [9], [9]),
        pool([1, 6, 300], [16], [16]),
        pool([1, 6, 300], [3], [2]),
        pool([1, 6, 100], [9], [9], pads=[4, 4]),
        pool([1, 6, 100], [9], [9], ceil_mode=1),
        pool([1, 6, 100], [9], [9], auto_pad="SAME_LOWER"),
        pool([1, 6, "t"], [9], [9]),
        pool([1, 6, 5], [9], [9]),
        pool([1, 6, 100], [9], [9], dtype=np.float16),
        one_node("MaxPool", [1, 6, 100], kernel_shape=[9], strides=[9]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_strided_average_pool_leaves_the_graph_alone_when_it_fits_or_is_not_known(original: ir.Model) -> None:
    left_alone(PASS, original)
