from __future__ import annotations

import numpy as np
import torch

from models.inflect.durations import alignment, expanded, frames_of
from tests.models.inflect.sizes import SMALL, channel_normed, convolved, drawn, model
from tests.onnx_runs import snr_db


def test_predictor_is_its_sums() -> None:
    x = drawn(SMALL.hidden_channels, 9)
    first = channel_normed(np.maximum(convolved(x.astype(np.float64), "dp.conv_1"), 0), "dp.norm_1")
    second = channel_normed(np.maximum(convolved(first, "dp.conv_2"), 0), "dp.norm_2")
    with torch.no_grad():
        got = model().dp(torch.from_numpy(x)[None], torch.ones(1, 1, 9))
    assert snr_db(convolved(second, "dp.proj"), got[0].numpy()) >= 120


def test_frames_are_rounded_up_and_padding_has_none() -> None:
    logs = torch.log(torch.tensor([[[0.2, 1.0, 2.5, 9.0]]]))
    mask = torch.tensor([[[1.0, 1.0, 1.0, 0.0]]])
    assert frames_of(logs, mask, torch.tensor(1.0)).tolist() == [[[1, 1, 3, 0]]]
    assert frames_of(logs, mask, torch.tensor(2.0)).tolist() == [[[1, 2, 5, 0]]]


def test_alignment_repeats_each_token_for_its_frames() -> None:
    path, mask = alignment(torch.tensor([[[2.0, 0.0, 3.0]]]), torch.ones(1, 1, 3))
    assert path.tolist() == [[[1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]]
    assert mask.tolist() == [[[1, 1, 1, 1, 1]]]
    statistics = torch.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])
    assert expanded(statistics, path).tolist() == [[[1, 1, 3, 3, 3], [4, 4, 6, 6, 6]]]


def test_alignment_has_one_frame_that_is_nobodys_when_no_token_has_any() -> None:
    path, mask = alignment(torch.zeros(1, 1, 2), torch.ones(1, 1, 2))
    assert (path.tolist(), mask.tolist()) == ([[[0, 0]]], [[[1]]])
