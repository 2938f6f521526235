from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import onnx_ir as ir
import onnxslim
import pytest

from surgery.declaration import EXACT_PARITY_DB
from surgery.fold_with_onnxslim import fold_with_onnxslim
from surgery.normalise_static_inputs import normalise_static_inputs
from tests.onnx_runs import run, snr_db
from tests.surgery.graphs import check, decoder, decoder_feed, serialised, static_shapes
from tests.vits_writer.recipe import Recipe

WINDOW = 24
RECIPES = [Recipe(), Recipe(strides=(8, 8, 4), flows=4), Recipe(latent=12, hidden=6, opset=13), Recipe(opset=18)]
NUMBERS_OF_SHAPES = {"Shape", "ConstantOfShape", "Range", "Gather", "Neg", "Exp"}
"""Operators that only compute sizes, zeros and exp(0) in a decoder."""


def static(recipe: Recipe) -> ir.Model:
    return normalise_static_inputs(static_shapes(recipe, WINDOW)).rewrite(decoder(recipe)).model


@pytest.mark.parametrize("recipe", RECIPES)
def test_fold_leaves_no_shape_arithmetic_and_computes_the_same(recipe: Recipe) -> None:
    original = static(recipe)
    before = serialised(original)
    done = fold_with_onnxslim().rewrite(original)
    check(done.model)
    left = {node.op_type for node in done.model.graph}
    assert not left & NUMBERS_OF_SHAPES
    assert done.hits == original.graph.num_nodes() - done.model.graph.num_nodes() > 0
    feed = decoder_feed(recipe, WINDOW)
    assert snr_db(run(original, feed)["audio"], run(done.model, feed)["audio"]) >= EXACT_PARITY_DB
    assert serialised(original) == before


def test_fold_keeps_names_and_shapes_of_inputs_and_outputs() -> None:
    recipe = Recipe()
    graph = fold_with_onnxslim().rewrite(static(recipe)).model.graph
    assert [(v.name, tuple(v.shape or ())) for v in graph.inputs] == list(static_shapes(recipe, WINDOW).items())
    assert [(v.name, tuple(v.shape or ())) for v in graph.outputs] == [("audio", (1, 1, 1, WINDOW * recipe.hop))]


def test_fold_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    fold_with_onnxslim().rewrite(static(Recipe()))
    assert capfd.readouterr() == ("", "")


def test_fold_leaves_the_streams_of_the_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # It may run in a thread, beside others that print.
    streams, slim = [], onnxslim.slim

    def watched(*arguments: Any) -> Any:
        streams.append((sys.stdout, sys.stderr))
        return slim(*arguments)

    monkeypatch.setattr("onnxslim.slim", watched)
    fold_with_onnxslim().rewrite(static(Recipe()))
    assert streams == [(sys.stdout, sys.stderr)]


def test_fold_takes_weights_from_external_data_wherever_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe()
    (tmp_path / "model").mkdir()
    ir.save(static(recipe), tmp_path / "model" / "decoder.onnx", external_data="weights.bin", size_threshold_bytes=0)
    monkeypatch.chdir(tmp_path)
    original = ir.load("model/decoder.onnx")
    assert isinstance(original.graph.initializers["dec.conv_pre.weight"].const_value, ir.ExternalTensor)
    done = fold_with_onnxslim().rewrite(original)
    feed = decoder_feed(recipe, WINDOW)
    assert snr_db(run(static(recipe), feed)["audio"], run(done.model, feed)["audio"]) >= EXACT_PARITY_DB
    assert isinstance(original.graph.initializers["dec.conv_pre.weight"].const_value, ir.ExternalTensor)
