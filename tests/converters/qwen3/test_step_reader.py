from __future__ import annotations

from collections.abc import Callable

import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import helper

from contracts.contract import Cache, CodeStep
from converters.qwen3.stage import STAGE
from converters.qwen3.step_reader import StepShape, read_step
from models.qwen3.cache import cache_layout
from models.qwen3.step import CodesStep, Step, cache_shape
from models.qwen3.step_graph import CODES as CODES_SEAM
from models.qwen3.step_graph import HIDDEN, step_graph
from surgery.rewrite_interface_axes import rewrite_interface_axes
from tests.gates.small_graphs import scale_proto
from tests.models.qwen3.originals import random_decoder
from tests.qwen3_configs import REDUCED
from tests.qwen3_reference_step import ReferenceStep, exported, reference_numel_walked
from tests.small_steps import CHANNELS, CODES, KEPT, NUMEL, SIZE, small_step

SMALL = StepShape(CODES, NUMEL, CHANNELS, KEPT, SIZE, "hidden")


def read(proto: onnx.ModelProto) -> StepShape | None:
    onnx.checker.check_model(proto, full_check=True)
    return read_step(ir.from_proto(proto))


def test_step_is_read_from_its_sizes() -> None:
    assert read(small_step()) == SMALL
    assert read(small_step(four_axes=True)) == SMALL
    assert read(small_step("codes")) == StepShape(CODES, NUMEL, CHANNELS, KEPT, SIZE, "codes")


def test_attention_is_not_told_when_it_is_not_the_same_everywhere() -> None:
    found = read(small_step(unlike=True))
    assert found == StepShape(CODES, NUMEL, CHANNELS, None, None, "hidden")


def renamed(old: str, new: str) -> Callable[[onnx.ModelProto], None]:
    def change(proto: onnx.ModelProto) -> None:
        for value in (*proto.graph.input, *proto.graph.output):
            value.name = new if value.name == old else value.name
        for node in proto.graph.node:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]

    return change


def another_size(proto: onnx.ModelProto) -> None:
    proto.graph.node.append(helper.make_node("Concat", ["cache_out", "cache_out"], ["twice"], axis=0))
    renamed("cache_out", "once")(proto)
    renamed("twice", "cache_out")(proto)
    proto.graph.output[1].type.tensor_type.shape.dim[0].dim_value = 2 * NUMEL
    proto.graph.output[1].name = "cache_out"


def symbolic(proto: onnx.ModelProto) -> None:
    proto.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "numel"


@pytest.mark.parametrize(
    "change",
    [renamed("hidden", "z"), renamed("cache", "state"), renamed("cache_out", "state"), another_size, symbolic],
)
def test_graph_is_no_step_when_its_tensors_are_not_those_of_one(change: Callable[[onnx.ModelProto], None]) -> None:
    proto = small_step()
    change(proto)
    assert read_step(ir.from_proto(proto)) is None


def test_other_graphs_are_no_steps() -> None:
    assert read(scale_proto(2.0)) is None


LAYOUT = cache_layout(REDUCED, "minimal")


def our_export(seam: str, codes: int) -> ir.Model:
    decoder, cache_of = random_decoder(REDUCED), cache_shape(REDUCED, LAYOUT)
    step = Step(decoder, LAYOUT, codes).eval()
    if seam == HIDDEN:
        return step_graph(step, seam, [(1, REDUCED.codebook_dim, 1, codes), cache_of])
    return step_graph(CodesStep(step, decoder.quantizer).eval(), seam, [(1, REDUCED.num_quantizers, codes), cache_of])


# Of the configuration: a window of 72 with the code itself, heads of 32, 8 * 5 * 4 * 3 * 2 * 2 samples a code. As many
# codes as a head has numbers, or as there are slots before them, do not mislead.


@pytest.mark.parametrize(("seam", "codes"), [(HIDDEN, 16), (CODES_SEAM, 32)])
def test_our_own_step_is_read(seam: str, codes: int) -> None:
    with torch.no_grad():
        model = our_export(seam, codes)
    assert not model.metadata_props
    assert read_step(model) == StepShape(codes, LAYOUT.numel, 1920, 71, 32, seam)


@pytest.mark.parametrize("seam", [HIDDEN, CODES_SEAM])
@pytest.mark.parametrize("codes", [16, 32, 71])
def test_the_references_step_is_read_with_and_without_its_four_axes(seam: str, codes: int) -> None:
    numel = reference_numel_walked(REDUCED)
    model = ir.from_proto(exported(ReferenceStep(random_decoder(REDUCED), seam), codes, numel))
    wanted = StepShape(codes, numel, 1920, 71, 32, seam)
    assert read_step(model) == wanted
    assert read_step(rewrite_interface_axes().rewrite(model).model) == wanted


def test_stage_recognises_a_step_as_far_as_its_sizes_tell() -> None:
    assert STAGE.recognised is not None
    found = STAGE.recognised(ir.from_proto(small_step()))
    assert found == (CodeStep(CODES, CHANNELS, None, KEPT, SIZE, 0, CODES), Cache(NUMEL, ()))
    assert STAGE.recognised(ir.from_proto(scale_proto(2.0))) is None
