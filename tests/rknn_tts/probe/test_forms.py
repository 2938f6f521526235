"""Which operators a kit has engines of: those that a twin uses, all, or none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from rknn_tts.probe.forms import ALL, AUTO, FORMS, NONE, REAL_SHARE, OperatorForm, chosen_forms, read_twin
from rknn_tts.probe.specimens import PLACED_AS_SUM
from rknn_tts.specimens import specimen_model
from surgery.catalogue import CATALOGUE
from surgery.trim_decoder import trim_decoder
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.refusals import small_decoder


def twin(*nodes: onnx.NodeProto, hits: dict[str, int] | None = None, weight: tuple[int, ...] = (4, 1, 1)) -> list[str]:
    """The names of the forms that a twin of these nodes uses; `w` is a weight of theirs."""
    graph = model(nodes, [tensor("x", [1, 4, 8])], [tensor("y", [1, 4, 8])], [constant("w", np.ones(weight))])
    return [form.name for form in chosen_forms(AUTO, read_twin(graph, hits or {}))]


def node(operator: str, name: str = "", **attributes: Any) -> onnx.NodeProto:
    inputs = ["x", "w"] if operator == "Conv" else ["x"]
    return helper.make_node(operator, inputs, ["y"], name, **attributes)


@pytest.mark.parametrize(
    ("operator", "attributes", "weight", "forms"),
    [
        ("LeakyRelu", {"alpha": -1.0}, (4, 1, 1), ["absolute_value"]),
        ("LeakyRelu", {"alpha": 0.1}, (4, 1, 1), []),
        ("LeakyRelu", {}, (4, 1, 1), []),
        ("Conv", {"group": 4}, (4, 1, 1), ["depthwise_step"]),
        ("Conv", {"group": 4}, (4, 1, 3), []),
        ("Conv", {"group": 2}, (4, 2, 1), []),
        ("Conv", {}, (4, 4, 1), []),
        ("GlobalAveragePool", {}, (4, 1, 1), ["pooled_statistics"]),
        ("InstanceNormalization", {}, (4, 1, 1), ["instance_norm"]),
        ("LayerNormalization", {}, (4, 1, 1), ["layer_norm"]),
        ("Relu", {}, (4, 1, 1), []),
    ],
)
def test_form_is_used_when_a_node_tells(
    operator: str, attributes: dict[str, Any], weight: tuple[int, ...], forms: list[str]
) -> None:
    assert twin(node(operator, **attributes), weight=weight) == forms


@pytest.mark.parametrize(
    ("hits", "forms"),
    [
        ({"rewrite_transposed_conv": 2}, ["polyphase_shuffle"]),
        ({"rewrite_long_transposed_conv": 1}, ["polyphase_shuffle"]),
        ({"rewrite_relative_attention": 12, "rewrite_masked_choices": 6}, ["relative_attention", "masked_choices"]),
        ({"mask_decoder": 40}, ["decoder_mask"]),
        ({"trim_decoder": 2}, ["place_crop"]),
        ({"rewrite_transposed_conv": 0, "normalise_header": 1}, []),
    ],
)
def test_form_is_used_when_its_pass_hit(hits: dict[str, int], forms: list[str]) -> None:
    assert twin(node("Relu"), hits=hits) == forms


@pytest.mark.parametrize(
    ("operator", "form"), [("LeakyRelu", "sine_triangle"), ("Relu", "sine_fine"), ("Softplus", "sine_soft")]
)
def test_form_of_a_sine_is_told_by_what_its_pass_wrote(operator: str, form: str) -> None:
    hits = {"rewrite_sines": 1}
    assert twin(node(operator, "wave/rewrite_sines/fold"), hits=hits) == [form]
    assert twin(node(operator, "another"), hits=hits) == []


def test_all_forms_are_taken_or_none_when_asked_for() -> None:
    graph = read_twin(ir.from_proto(onnx.ModelProto(graph=helper.make_graph([], "g", [], []), ir_version=8)), {})
    assert chosen_forms(ALL, graph) == FORMS
    assert chosen_forms(NONE, graph) == chosen_forms(AUTO, graph) == ()


def test_names_are_of_files_and_each_form_proves_passes_of_the_catalogue() -> None:
    gates = {f"pass.{declaration.name}" for declaration in CATALOGUE}
    assert all(form.name.replace("_", "").isalnum() for form in FORMS)
    assert len({form.name for form in FORMS}) == len(FORMS)
    assert {gate for form in FORMS for gate in form.proves} <= gates


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_feed_is_the_same_each_time_and_a_mask_is_ones_then_zeros(form: OperatorForm) -> None:
    first, again = form.feed(), form.feed()
    assert all(np.array_equal(first[name], again[name]) for name in first)
    for name, array in first.items():
        if name == "mask":
            real = int(np.ceil(REAL_SHARE * array.shape[-1]))
            assert array[..., :real].all()
            assert not array[..., real:].any()
        elif name == "place":
            assert array.ravel().tolist() == [0, 1, 0]
        else:
            assert 0.9 < array.std() < 1.1


def test_crop_by_place_is_written_as_its_pass_does() -> None:
    done = trim_decoder("y_mask", 3, 2).rewrite(small_decoder(pads=[1, 1]))
    assert done.hits == 1
    crop = Counter(made.op_type for made in done.model.graph if (made.name or "").startswith("trim_decoder/"))
    assert crop == Counter(Conv=3, Reshape=3, Slice=3, Mul=3, Add=2)
    written = Counter(made.op_type for made in specimen_model(PLACED_AS_SUM).graph.node)
    assert written - Counter(Conv=2) == crop  # one convolution ahead, and one behind
