from __future__ import annotations

import numpy as np
import pytest

from contracts.contract import Trim, Window
from converters.vits_engine import feeds_of, passes_of
from converters.vits_ladder import DecoderWindow
from converters.vits_windows import Latent

WINDOW = Window(6, 2, 2, 2, 4, None)


def said(value: float, **given: float) -> Latent:
    speaker = {name: np.full((1, 2, 1), number, np.float32) for name, number in given.items()}
    return Latent(np.full((1, 3, 6), value, np.float32), np.ones((1, 1, 6), np.float32), speaker)


@pytest.mark.parametrize(
    ("masked", "trim", "takes_short", "speakers", "fed", "padded"),
    [
        (True, None, True, False, [1.0], [2.0]),
        (False, None, True, False, [1.0], [2.0]),
        (False, None, False, False, [1.0], []),
        (False, None, False, True, [1.0, 2.0], []),
        (False, Trim("where", 4), False, False, [1.0, 2.0, 1.0], []),
    ],
)
def test_feeds_have_padding_where_an_engine_may_get_some(
    masked: bool, trim: Trim | None, takes_short: bool, speakers: bool, fed: list[float], padded: list[float]
) -> None:
    one, other = (said(1.0, g=1.0), said(2.0, g=2.0)) if speakers else (said(1.0), said(2.0))
    feeds = feeds_of(DecoderWindow(WINDOW, masked, trim, takes_short), one, other)
    assert [float(feed["z"][0, 0, 0]) for feed in feeds.whole] == fed
    assert [float(feed["z"][0, 0, 0]) for feed in feeds.padded] == padded
    assert all(feed["y_mask"].reshape(-1).tolist() == [1, 1, 1, 1, 0, 0] for feed in feeds.padded)
    places = [] if trim is None else [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert [feed["where"].reshape(-1).tolist() for feed in feeds.added] == places


def test_passes_mask_or_trim() -> None:
    def names(made: DecoderWindow, masking: bool) -> list[str]:
        return [bound.name for bound in passes_of(made, masking)]

    assert names(DecoderWindow(WINDOW, True, None, True), True) == ["mask_decoder"]
    assert names(DecoderWindow(WINDOW, True, None, True), False) == []  # a slice that has its masks
    assert names(DecoderWindow(WINDOW, False, Trim("place", 4), False), False) == ["trim_decoder"]
