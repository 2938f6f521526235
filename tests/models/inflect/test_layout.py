from __future__ import annotations

from math import prod

import pytest

from models.inflect.config import MICRO, NANO, InflectConfig
from models.inflect.layout import layout, normed
from models.inflect.model import Inflect
from tests.models.inflect.sizes import SMALL

TENSORS, NORMED = 302, 108
"""Of both releases: initialisers of the two published graphs together, and 410 tensors in `model.pth`."""


@pytest.mark.parametrize(("config", "parameters"), [(MICRO, 9_356_513), (NANO, 3_966_721)])
def test_layout_has_as_many_parameters_as_the_authors_state(config: InflectConfig, parameters: int) -> None:
    """`deployable_parameters` of their release manifest, and their model cards; gains of weight norm are counted."""
    shapes = layout(config)
    assert (len(shapes), len(normed(config))) == (TENSORS, NORMED)
    gains = sum(shapes[name][0] for name in normed(config))
    assert sum(map(prod, shapes.values())) + gains == parameters


def test_layout_is_the_published_checkpoints() -> None:
    """Shapes that are published for Micro (the report of a checkpoint's export, and a converter of the graphs)."""
    shapes = layout(MICRO)
    assert shapes["enc_p.emb.weight"] == (178, 96)
    assert shapes["enc_p.encoder.attn_layers.2.emb_rel_k"] == (1, 9, 48)
    assert shapes["enc_p.proj.weight"] == (384, 96, 1)
    assert shapes["dp.conv_1.weight"] == (256, 96, 3)
    assert shapes["flow.flows.6.enc.in_layers.3.weight"] == (192, 96, 5)
    assert shapes["flow.flows.6.enc.res_skip_layers.3.weight"] == (96, 96, 1)
    assert shapes["dec.conv_pre.weight"] == (320, 192, 7)
    assert shapes["dec.ups.0.weight"] == (320, 160, 16)
    assert shapes["dec.resblocks.11.convs2.2.weight"] == (20, 20, 11)
    assert shapes["dec.conv_post.weight"] == (1, 20, 7)
    assert "dec.conv_post.bias" not in shapes


@pytest.mark.parametrize("config", [SMALL, NANO])
def test_layout_is_that_of_the_model(config: InflectConfig) -> None:
    state = Inflect(config).state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == layout(config)
