"""Channel flips folded into the weights: the same bits where sums of whole numbers cannot round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from surgery.channel_reading import permutation_of
from surgery.fold_channel_flips import DECLARATION, LEAST_DB, fold_channel_flips
from surgery.fold_constants import fold_constants
from surgery.inferred import infer_types
from surgery.mask_decoder import mask_decoder
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.channel_graphs import STEPS, ChannelWriter, assert_same_bits, folded
from tests.surgery.graphs import check, decoder, decoder_feed, latent, serialised
from tests.vits_writer.recipe import Recipe

PASS = fold_channel_flips()
FRAMES = 24


def operators(made: ir.Model) -> list[str]:
    return [node.op_type for node in made.graph]


@pytest.mark.parametrize("flows", range(6))
@pytest.mark.parametrize("constants", ["computed", "folded"])
@pytest.mark.parametrize("masks", ["without", "with"])
def test_fold_channel_flips_takes_every_flip_out_of_a_vits_decoder(flows: int, constants: str, masks: str) -> None:
    recipe = Recipe(flows=flows)
    original = decoder(recipe)
    if masks == "with":
        original = mask_decoder("y_mask").rewrite(original).model
    if constants == "folded":
        original = fold_constants().rewrite(original).model
    done = PASS.rewrite(original)
    assert (done.hits, done.refused) == (flows, ())
    if not flows:
        assert done.model is original
        return
    check(done.model)
    steps = [node for node in done.model.graph if node.op_type == "Slice" and permutation_of(node) is not None]
    assert steps == []
    assert len(list(done.model.graph)) == len(list(original.graph)) - flows
    feed = decoder_feed(recipe, FRAMES)
    feed["y_mask"][..., -4:] = 0
    assert snr_db(run(original, feed)["audio"], run(done.model, feed)["audio"]) >= LEAST_DB


@pytest.mark.parametrize("opset", [13, 14, 16, 17, 18, 19])
def test_fold_channel_flips_takes_every_flip_out_when_the_opset_is(opset: int) -> None:
    original = decoder(Recipe(opset=opset))
    done = PASS.rewrite(original)
    assert done.hits == Recipe().flows
    feed = {"z": latent(Recipe(), FRAMES), "y_mask": np.ones((1, 1, FRAMES), np.float32)}
    assert snr_db(run(original, feed)["audio"], run(done.model, feed)["audio"]) >= LEAST_DB


@pytest.mark.parametrize("kind", ["Slice", "Gather", "both"])
@pytest.mark.parametrize("flips", [1, 2, 3, 4])
def test_fold_channel_flips_keeps_every_bit_of_a_flow_behind_which_a_convolution_reads(kind: str, flips: int) -> None:
    w, z = ChannelWriter(), "x"
    for number in range(flips):
        by_gather = kind == "Gather" or (kind == "both" and number % 2)
        z = w.coupling(w.pick(z, [3, 2, 1, 0]) if by_gather else w.flip(z))
    made = folded(PASS, w.finished(w.conv(w.node("Mul", z, "mask"))), flips)
    assert "Gather" not in operators(made)


@pytest.mark.parametrize(("flips", "hits"), [(1, 0), (2, 2), (3, 0), (4, 4)])
def test_fold_channel_flips_needs_an_even_number_when_the_flow_is_the_whole_graph(flips: int, hits: int) -> None:
    w, z = ChannelWriter(), "x"
    for _ in range(flips):
        z = w.coupling(w.flip(z))
    folded(PASS, w.finished(z), hits)


def _flip_to_output(w: ChannelWriter) -> str:
    return w.flip(w.conv("x"))


def _picked(w: ChannelWriter) -> str:
    return w.conv(w.pick(w.node("Relu", w.conv(w.pick("x", [2, 0, 3, 1]), 6)), [5, 1, 0, 2, 4, 3]))


def _negative_indices(w: ChannelWriter) -> str:
    return w.conv(w.pick("x", [-1, 0, -3, 2]))


def _depthwise(w: ChannelWriter) -> str:
    return w.conv(w.conv(w.flip("x"), 4, group=4))


def _depthwise_transposed(w: ChannelWriter) -> str:
    return w.conv(w.conv_transpose(w.flip("x"), 4, group=4))


def _grouped(w: ChannelWriter) -> str:
    return w.conv(w.pick(w.conv(w.pick("x", [1, 0, 3, 2]), 4, group=2), [1, 0, 2, 3]))


def _grouped_out(w: ChannelWriter) -> str:
    return w.flip(w.conv(w.pick(w.conv("x", 4, group=2), [1, 0, 2, 3])))


def _grouped_transposed(w: ChannelWriter) -> str:
    return w.conv(w.pick(w.conv_transpose(w.pick("x", [1, 0, 3, 2]), 8, group=2), [3, 0, 2, 1, 4, 7, 6, 5]))


def _transposed(w: ChannelWriter) -> str:
    return w.conv(w.flip(w.conv_transpose(w.flip("x"), 6, bias=False)), bias=False)


def _channel_constants(w: ChannelWriter) -> str:
    y = w.node("Mul", w.flip("x"), w.weight([[1], [2], [3], [-1]]))
    y = w.node("PRelu", y, w.weight([[[2], [3], [1], [-2]]]))
    return w.conv(w.node("Sub", w.weight([[[0], [1], [2], [3]]]), w.node("Add", y, w.weight([5] * STEPS)), channels=4))


def _nodes_of_one_constant(w: ChannelWriter) -> str:
    shared = w.weight([[1], [2], [3], [-1]])
    return w.conv(w.node("Add", w.node("Mul", w.flip("x"), shared), w.flip(w.node("Mul", "x", shared))))


def _where(w: ChannelWriter) -> str:
    y = w.flip("x")
    test = w.node("Cast", w.node("Relu", y), to=TensorProto.BOOL)
    return w.conv(w.node("Where", test, y, w.weight([[7], [8], [9], [6]])))


def _clip(w: ChannelWriter) -> str:
    return w.conv(w.node("Clip", w.flip("x"), w.weight(-1), w.weight(3)))


def _sum_of_many(w: ChannelWriter) -> str:
    return w.conv(w.node("Sum", w.flip("x"), w.flip(w.conv("x")), w.conv("x"), "mask"))


def _two_flips_of_one(w: ChannelWriter) -> str:
    return w.node("Add", w.conv(w.flip("x")), w.conv(w.pick("x", [1, 3, 0, 2])))


def _slices(w: ChannelWriter) -> str:
    y = w.flip("x")
    return w.join(w.conv(w.block(y, 0, 1)), w.conv(w.block(y, 1, 4)), w.conv(w.node("Relu", w.block(y, 2, 4))))


def _slices_of_what_is_turned_behind(w: ChannelWriter) -> str:
    told = w.conv("x", 8)
    return w.conv(w.node("Add", w.node("Add", w.flip("x"), w.block(told, 0, 4)), w.block(told, 4, 8)))


def _split_of_what_is_turned_behind(w: ChannelWriter) -> str:
    mean, spread = w.halves(w.conv("x", 8))
    return w.conv(w.node("Add", w.node("Add", w.flip("x"), mean), spread))


def _concat_in_another_order(w: ChannelWriter) -> str:
    return w.flip(w.join(w.conv("x", 2), w.conv("x", 3), w.conv("x", 1)))


def _many_parts(w: ChannelWriter) -> str:
    parts = w.nodes_of("Split", [w.pick("x", [1, 0, 3, 2]), w.weight([1, 1, 2], np.int64)], 1, 1, 2, axis=-2)
    return w.join(*(w.conv(part, 2) for part in parts))


def _part_twice(w: ChannelWriter) -> str:
    first, second = w.halves(w.flip("x"))
    return w.conv(w.join(second, first, second))


def _chain_to_output(w: ChannelWriter) -> str:
    return w.flip(w.pick(w.flip(w.conv("x")), [1, 0, 3, 2]))


def _nothing_moves(w: ChannelWriter) -> str:
    return w.conv(w.pick("x", [0, 1, 2, 3]))


FOLDED: dict[Callable[[ChannelWriter], str], int] = {
    _flip_to_output: 1,
    _picked: 2,
    _negative_indices: 1,
    _depthwise: 1,
    _depthwise_transposed: 1,
    _grouped: 2,
    _grouped_out: 2,
    _grouped_transposed: 2,
    _transposed: 2,
    _channel_constants: 1,
    _nodes_of_one_constant: 2,
    _where: 1,
    _clip: 1,
    _sum_of_many: 2,
    _two_flips_of_one: 2,
    _slices: 1,
    _slices_of_what_is_turned_behind: 1,
    _split_of_what_is_turned_behind: 1,
    _concat_in_another_order: 1,
    _many_parts: 1,
    _part_twice: 1,
    _chain_to_output: 3,
    _nothing_moves: 1,
}


@pytest.mark.parametrize(("write", "hits"), FOLDED.items(), ids=lambda one: getattr(one, "__name__", str(one)))
def test_fold_channel_flips_keeps_every_bit_when_it_folds(write: Callable[[ChannelWriter], str], hits: int) -> None:
    w = ChannelWriter()
    made = folded(PASS, w.finished(write(w)), hits)
    assert not any(permutation_of(node) for node in made.graph)
    assert "Gather" not in operators(made)
    used = {value.name for node in made.graph for value in node.inputs if value is not None}
    assert set(made.graph.initializers) <= used


def test_fold_channel_flips_folds_one_set_when_another_cannot_be_folded() -> None:
    w = ChannelWriter()
    made = folded(PASS, w.finished(w.conv(w.flip("x")), w.flip("x"), w.flip(w.conv("x", 6))), 2)
    assert sum(permutation_of(node) is not None for node in _looked_at(made).graph) == 1


def test_fold_channel_flips_copies_a_weight_when_others_read_it_too() -> None:
    w = ChannelWriter()
    weight = w.weight(w.whole(4, 4, 3))
    outputs = [w.conv(w.flip("x"), weight=weight), w.conv("x", weight=weight), w.conv(w.flip("x"), weight=weight)]
    made = folded(PASS, w.finished(*outputs), 2)
    assert [value.name for value in made.graph.initializers.values() if str(value.name).endswith(weight)] == [
        weight,
        f"{DECLARATION.name}/{weight}",
    ]


def test_fold_channel_flips_keeps_a_constant_when_its_channels_are_alike() -> None:
    w = ChannelWriter()
    alike = w.weight([[2], [2], [2], [2]])
    made = folded(PASS, w.finished(w.conv(w.node("Mul", w.flip("x"), alike))), 1)
    assert alike in made.graph.initializers


def test_fold_channel_flips_folds_the_flip_of_a_constant() -> None:
    w = ChannelWriter()
    folded(PASS, w.finished(w.conv(w.node("Add", w.flip("x"), w.flip(w.weight([[[1], [2], [3], [4]]]))))), 2)


def test_fold_channel_flips_folds_when_the_length_is_open() -> None:
    w = ChannelWriter()
    folded(PASS, w.finished(w.conv(w.coupling(w.flip("x"))), steps="steps"), 1)


def test_fold_channel_flips_folds_when_constants_are_nodes() -> None:
    w = ChannelWriter()
    original = w.finished(w.conv(w.node("Mul", w.flip("x"), w.weight([[1], [2], [3], [-1]]))))
    graph = original.graph
    for name, value in list(graph.initializers.items()):
        node = ir.node("Constant", [], {"value": value.const_value}, name=f"made_{name}")
        value.replace_all_uses_with(node.outputs[0])
        del graph.initializers[name]
        node.outputs[0].name = name
        graph.insert_before(graph[0], node)
    made = folded(PASS, original, 1)
    # what was read of the flip, the weight, the bias and the factors is gone, or stands in another order
    assert operators(made) == ["Mul", "Conv"] or operators(made).count("Constant") == 1


def test_fold_channel_flips_keeps_half_floats_when_the_weights_are() -> None:
    random = np.random.default_rng(2)
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["y"], "g", axis=1),
        helper.make_node("Conv", ["y", "w"], ["z"], "c"),
    ]
    weights = [constant("i", [2, 0, 1], np.int64), constant("w", random.integers(-2, 3, (4, 3, 1)), np.float16)]
    half = TensorProto.FLOAT16
    original = model(nodes, [tensor("x", [1, 3, 5], half)], [tensor("z", [1, 4, 5], half)], weights)
    done = PASS.rewrite(original)
    assert done.hits == 1
    check(done.model)
    feed = {"x": random.integers(-3, 4, (1, 3, 5)).astype(np.float16)}
    np.testing.assert_array_equal(run(done.model, feed)["z"], run(original, feed)["z"])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_fold_channel_flips_keeps_every_bit_of_any_graph(data: st.DataObject) -> None:
    w = ChannelWriter(seed=data.draw(st.integers(0, 9)))
    values = ["x"]
    for _ in range(data.draw(st.integers(2, 12))):
        values += _drawn(w, data, values)
    outputs = [w.conv(values[-1], 4)]
    if data.draw(st.booleans()) and values[-1] != "x":
        outputs.append(values[-1])
    original = w.finished(*outputs)
    before = serialised(original)
    done = PASS.rewrite(original)
    assert serialised(original) == before
    assert done.refused == ()
    if done.hits == 0:
        assert done.model is original
        return
    assert_same_bits(original, done.model)
    left = [sum(permutation_of(node) is not None for node in _looked_at(made).graph) for made in (original, done.model)]
    assert left[1] == left[0] - done.hits


def _drawn(w: ChannelWriter, data: st.DataObject, values: list[str]) -> list[str]:
    """What one more node makes of values there are."""
    x = data.draw(st.sampled_from(values[-4:]))
    channels = w.sizes[x]
    alike = [value for value in values if w.sizes[value] == channels]
    kind = data.draw(st.sampled_from([*"ffpcCdgrammskjbu"]))
    if kind == "f":
        return [w.flip(x)]
    if kind == "p":
        return [w.pick(x, data.draw(st.permutations(range(channels))))]
    if kind == "c":
        return [w.conv(x, data.draw(st.sampled_from([2, 4])))]
    if kind == "C":
        return [w.conv_transpose(x)]
    if kind == "d":
        return [w.conv(x, channels, group=channels)]
    if kind == "g" and channels % 2 == 0:
        return [w.conv(x, 4, group=2)]
    if kind == "a":
        return [w.node("Add", x, data.draw(st.sampled_from(alike)))]
    if kind == "m":
        return [w.node("Mul", x, "mask")]
    if kind == "k":
        return [w.node("Mul", x, w.weight(w.random.choice([-1, 1], (channels, 1))))]
    if kind == "s" and channels % 2 == 0:
        return w.halves(x)
    if kind == "j" and channels <= 4:
        return [w.join(x, data.draw(st.sampled_from(values)))]
    if kind == "b" and channels > 1:
        start = data.draw(st.integers(0, channels - 1))
        return [w.block(x, start, data.draw(st.integers(start + 1, channels)))]
    if kind == "u":
        return [w.node("Add", x, w.node("ReduceMax", x, channels=1, axes=[1], keepdims=1))]
    return [w.node("Relu", x)]


def _looked_at(made: ir.Model) -> ir.Model:
    copy = made.clone()
    infer_types(copy)
    return copy
