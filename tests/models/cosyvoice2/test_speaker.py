"""The speaker encoder's module against the original at the same weights, and its parts by hand."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import torch
from torch import nn

from models.cosyvoice2.speaker import gate_matrices, speaker_of
from models.cosyvoice2.speaker_config import TRUE_CONFIG, SpeakerConfig, config_of, layout, steps_of
from models.cosyvoice2.speaker_graph import EMBEDDING, FBANK, embedded, speaker_graph
from models.cosyvoice2.speaker_stand_in import stand_in
from models.cosyvoice2.speaker_weights import affine_step, folded, folded_conv
from tests.cosyvoice2_speaker import SMALL, Floats, original, original_embedding, raw_weights
from tests.cosyvoice_reference import cosyvoice_module
from tests.onnx_runs import run, snr_db


def drawn(features: int, frames: int) -> Floats:
    return 3 * np.random.default_rng(frames).standard_normal((1, 1, features, frames), np.float32)


def ours(fbank: Floats, config: SpeakerConfig = SMALL) -> Floats:
    return embedded(speaker_of(folded(raw_weights(config), config), config, fbank.shape[-1]), fbank)


@pytest.mark.parametrize("frames", [50, 199, 200, 201, 331, 400])
def test_speaker_is_the_originals(frames: int) -> None:
    """In double precision: in single, the original itself is 122 to 134 dB from that."""
    fbank = torch.from_numpy(drawn(SMALL.features, frames)).double()
    owed = original().double()(fbank[:, 0].transpose(1, 2))
    got = speaker_of(folded(raw_weights(), SMALL), SMALL, frames).double()(fbank)
    assert got.shape == (1, SMALL.embedding)
    assert snr_db(owed.numpy(), got.numpy()) > 120


def upstream(**sizes: int) -> nn.Module:
    made: nn.Module = cosyvoice_module("funasr.models.campplus.model").CAMPPlus(**sizes)
    return made.eval()


def test_whole_depth_is_the_originals_with_other_statistics_than_a_new_modules() -> None:
    """The original's own class, narrow: 52 layers; sizes as it makes them of its arguments."""
    model = upstream(feat_dim=16, embedding_size=6, growth_rate=4, bn_size=2, init_channels=8)
    for norm in model.modules():
        if isinstance(norm, (nn.BatchNorm1d, nn.BatchNorm2d)):
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean.uniform_(-0.3, 0.3)
            norm.running_var.uniform_(0.5, 1.5)
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items() if "num_batches" not in name}
    config = config_of({name: array.shape for name, array in state.items()})
    assert config == SpeakerConfig(16, 32, 8, 4, 8, 4, (12, 24, 16), 6)
    fbank = drawn(16, 250)
    got = embedded(speaker_of(folded(state, config), config, 250), fbank)
    assert snr_db(original_embedding(model, fbank), got) > 120


def test_layout_and_count_are_the_published_ones() -> None:
    state = upstream(feat_dim=80, embedding_size=192).state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items() if "num_batches" not in name}
    assert layout(TRUE_CONFIG) == shapes
    trained = sum(prod(shape) for name, shape in shapes.items() if "running_" not in name)
    assert trained == 6_848_544  # funasr's model, counted


def test_sizes_are_those_that_the_tensors_tell() -> None:
    shapes = layout(SMALL)
    assert config_of(shapes) == SMALL
    assert config_of({**shapes, "xvector.dense.linear.weight": (6,)}) is None
    for name in ("head.conv1.weight", "xvector.tdnn.linear.weight", "xvector.block3.tdnnd1.linear1.weight"):
        assert config_of({key: shape for key, shape in shapes.items() if key != name}) is None
    assert config_of({**shapes, "head.conv1.weight": (0, 1, 3, 3)}) is None
    assert config_of({**shapes, "xvector.tdnn.linear.weight": (8, 7, 5)}) is None


def test_steps_are_half_the_frames_rounded_up() -> None:
    assert [steps_of(frames) for frames in (1, 2, 199, 200, 201)] == [1, 1, 100, 100, 101]


def test_gate_sees_the_mean_over_all_and_over_its_segment() -> None:
    context, spread = gate_matrices(150)
    signal = torch.arange(150, dtype=torch.float32)
    # Means: 74.5 of all, 49.5 and 124.5 of the segments.
    assert (signal @ context).tolist() == pytest.approx([74.5 + 49.5, 74.5 + 124.5], rel=1e-5)
    assert (torch.tensor([1.0, 2.0]) @ spread).tolist() == [1.0] * 100 + [2.0] * 50
    assert gate_matrices(100)[1].shape == (1, 100)


def test_every_frame_counts() -> None:
    fbank = drawn(SMALL.features, 120)
    before = ours(fbank)
    for frame in (0, 119):
        moved = fbank.copy()
        moved[..., frame] += 5
        assert snr_db(before, ours(moved)) < 60


def test_normalisation_is_folded_by_hand() -> None:
    mean, variance = np.array([1.0], np.float32), np.array([3.0], np.float32)
    scale, shift = affine_step(mean, variance, np.array([4.0], np.float32), np.array([5.0], np.float32), 1.0)
    assert (float(scale[0]), float(shift[0])) == (2.0, 3.0)
    made = folded_conv("c", np.full((1, 2, 1), 7, np.float32), np.array([11], np.float32), (scale, shift))
    assert (made["c.weight"].tolist(), made["c.bias"].tolist()) == ([[[14.0], [14.0]]], [25.0])
    assert list(folded_conv("c", np.ones((1, 1, 1), np.float32), None, None)) == ["c.weight"]


def test_negative_variance_is_named() -> None:
    weights = dict(raw_weights())
    name = "xvector.transit2.nonlinear.batchnorm"
    weights[f"{name}.running_var"] = -weights[f"{name}.running_var"]
    with pytest.raises(ValueError, match=rf"^{name}: a variance is -1\.\d+$"):
        folded(weights, SMALL)


def test_graph_is_its_module_and_holds_no_operator_that_an_npu_lacks() -> None:
    fbank = drawn(SMALL.features, 250)
    speaker = speaker_of(folded(raw_weights(), SMALL), SMALL, 250)
    model = speaker_graph(speaker, SMALL, 250)
    assert snr_db(embedded(speaker, fbank), run(model, {FBANK: fbank})[EMBEDDING]) > 110
    kinds = {node.op_type for node in model.graph}
    assert not kinds & {"AveragePool", "Expand", "Slice", "Gather", "BatchNormalization", "Transpose"}


def test_stand_in_has_no_neutral_normalisation_and_no_two_alike() -> None:
    weights = stand_in(SMALL, 0)
    assert {name: array.shape for name, array in weights.items()} == layout(SMALL)
    for name, array in weights.items():
        assert np.isfinite(array).all()
        assert len(np.unique(array)) > array.size // 2, name
        if name.endswith("running_var"):
            assert array.min() >= 0.5
    assert not np.array_equal(weights["head.bn1.bias"], stand_in(SMALL, 1)["head.bn1.bias"])
