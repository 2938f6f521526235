from __future__ import annotations

import onnx_ir as ir

from surgery.normalise_static_inputs import normalise_static_inputs
from tests.gates.small_graphs import scale_proto
from tests.onnx_runs import as_proto, run
from tests.surgery.graphs import check, decoder, decoder_feed, serialised, static_shapes
from tests.vits_writer.recipe import Recipe

WINDOW = 24


def test_normalise_static_inputs_states_the_shapes_and_computes_the_same() -> None:
    recipe = Recipe()
    original = decoder(recipe)
    before = serialised(original)
    done = normalise_static_inputs(static_shapes(recipe, WINDOW)).rewrite(original)
    check(done.model)
    assert done.hits == 2
    assert [(v.name, tuple(v.shape or ())) for v in done.model.graph.inputs] == [
        ("z", (1, 8, 24)),
        ("y_mask", (1, 1, 24)),
    ]
    feed = decoder_feed(recipe, WINDOW)
    assert (run(original, feed)["audio"] == run(done.model, feed)["audio"]).all()
    assert serialised(original) == before


def test_normalise_static_inputs_leaves_no_symbolic_size_that_a_graph_states_inside() -> None:
    recipe = Recipe()
    original = decoder(recipe)
    for node in original.graph:
        for value in node.outputs:
            value.shape = original.graph.inputs[0].shape
    done = normalise_static_inputs(static_shapes(recipe, WINDOW)).rewrite(original)
    assert b"frames" not in as_proto(done.model).SerializeToString()


def test_pass_leaves_alone_inputs_that_have_their_shapes() -> None:
    given = ir.from_proto(scale_proto(2.0))
    done = normalise_static_inputs({"x": (1, 4)}).rewrite(given)
    assert (done.hits, done.refused) == (0, ())
    assert done.model is given
