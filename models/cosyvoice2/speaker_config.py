"""Sizes of CAM++ (CAMPPlus), CosyVoice's speaker encoder, and its parts in the order in which they run; no torch.

    fbank [F, T] -> head: convolutions over frequency and time, frequency by 8 -> tdnn, time by 2 -> three blocks of
    densely connected layers, each layer's output under a gate that sees its mean and that of its segment -> mean and
    deviation over time -> dense -> embedding

Names are a checkpoint's, as 3D-Speaker and FunASR write them; `head` and `xvector` are upstream's too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Shape = tuple[int, ...]

RESIDUAL_LAYERS, RESIDUAL_BLOCKS = 2, 2
"""Of the head: each layer halves the frequencies in its first block."""

FREQUENCY_STEPS = 8
"""What the head divides the frequencies by: each of its layers by 2, and its last convolution."""

TDNN_KERNEL, LOCAL_KERNEL = 5, 3

DILATIONS = (1, 2, 2)
"""Of the layers of each block."""

OUT_NORM = "xvector.out_nonlinear.batchnorm"
"""Stands right behind the last block's halving convolution."""

SEGMENT = 100
"""Steps over which a gate's local mean is taken, in steps of two frames; the last segment may be shorter."""

NORM_EPSILON = 1e-5
"""Of every batch normalisation: torch's default, which upstream leaves as it is."""

LARGEST_LAYERS = 64
"""Of a block: more than twice what any known model has."""


@dataclass(frozen=True)
class SpeakerConfig:
    """Sizes: of the features, of each part's channels, of the layers in each block, of the embedding."""

    features: int = 80
    head: int = 32
    initial: int = 128
    growth: int = 32
    bottleneck: int = 128
    gate: int = 64
    layers: tuple[int, ...] = (12, 24, 16)
    embedding: int = 192


TRUE_CONFIG = SpeakerConfig()
"""Of the published model."""


@dataclass(frozen=True)
class Conv:
    """A convolution of the model.

    Attributes:
        name: of its weights, but for the ending.
        shape: of its weight.
        norm: the batch normalisation behind it; None where there is none.
        bias: whether it has a bias of its own.
        affine: whether the normalisation has a scale and a shift.
    """

    name: str
    shape: Shape
    norm: str | None = None
    bias: bool = False
    affine: bool = True


@dataclass(frozen=True)
class Norm:
    """A batch normalisation ahead of a Relu and a convolution, which cannot go into any."""

    name: str
    channels: int


def parts(config: SpeakerConfig) -> Iterator[Conv | Norm]:
    """What holds weights, in the order in which it runs."""
    yield from _head(config)
    inner = config.head * (config.features // FREQUENCY_STEPS)
    yield Conv("xvector.tdnn.linear", (config.initial, inner, TDNN_KERNEL), "xvector.tdnn.nonlinear.batchnorm")
    channels = config.initial
    for block, layers in enumerate(config.layers, 1):
        for layer in range(1, layers + 1):
            yield from _dense_layer(config, f"xvector.block{block}.tdnnd{layer}", channels)
            channels += config.growth
        yield Norm(f"xvector.transit{block}.nonlinear.batchnorm", channels)
        last = OUT_NORM if block == len(config.layers) else None
        yield Conv(f"xvector.transit{block}.linear", (channels // 2, channels, 1), last)
        channels //= 2
    shape = (config.embedding, 2 * channels, 1)
    yield Conv("xvector.dense.linear", shape, "xvector.dense.nonlinear.batchnorm", affine=False)


def layout(config: SpeakerConfig) -> dict[str, Shape]:
    """Every tensor of a checkpoint by name, but for the counts of batches that a training keeps."""
    made: dict[str, Shape] = {}
    for part in parts(config):
        if isinstance(part, Norm):
            made |= _statistics(part.name, part.channels, affine=True)
            continue
        made[f"{part.name}.weight"] = part.shape
        if part.bias:
            made[f"{part.name}.bias"] = part.shape[:1]
        if part.norm is not None:
            made |= _statistics(part.norm, part.shape[0], part.affine)
    return made


def config_of(shapes: Mapping[str, Shape]) -> SpeakerConfig | None:
    """The sizes that the tensors of a checkpoint tell; None where they tell none. `layout` says whether all fit."""
    layers: list[int] = []
    while f"xvector.block{len(layers) + 1}.tdnnd1.linear1.weight" in shapes and len(layers) < len(DILATIONS):
        block = f"xvector.block{len(layers) + 1}"
        count = 1
        while f"{block}.tdnnd{count + 1}.linear1.weight" in shapes and count < LARGEST_LAYERS:
            count += 1
        layers.append(count)
    first = "xvector.block1.tdnnd1"
    known = [
        shapes.get(f"{name}.weight", ())
        for name in (
            "head.conv1",
            "xvector.tdnn.linear",
            f"{first}.cam_layer.linear_local",
            f"{first}.linear1",
            f"{first}.cam_layer.linear1",
            "xvector.dense.linear",
        )
    ]
    if len(layers) != len(DILATIONS) or not all(len(shape) >= 3 for shape in known):
        return None
    head, tdnn, local, bottleneck, gate, dense = known
    if not head[0] or tdnn[1] % head[0]:
        return None
    return SpeakerConfig(
        features=tdnn[1] // head[0] * FREQUENCY_STEPS,
        head=head[0],
        initial=tdnn[0],
        growth=local[0],
        bottleneck=bottleneck[0],
        gate=gate[0],
        layers=tuple(layers),
        embedding=dense[0],
    )


def steps_of(frames: int) -> int:
    """Steps that the blocks take of so many frames: half as many, rounded up."""
    return -(-frames // 2)


def _head(config: SpeakerConfig) -> Iterator[Conv]:
    width = config.head
    yield Conv("head.conv1", (width, 1, 3, 3), "head.bn1")
    for layer in range(1, RESIDUAL_LAYERS + 1):
        for block in range(RESIDUAL_BLOCKS):
            stem = f"head.layer{layer}.{block}"
            yield Conv(f"{stem}.conv1", (width, width, 3, 3), f"{stem}.bn1")
            yield Conv(f"{stem}.conv2", (width, width, 3, 3), f"{stem}.bn2")
            if block == 0:
                yield Conv(f"{stem}.shortcut.0", (width, width, 1, 1), f"{stem}.shortcut.1")
    yield Conv("head.conv2", (width, width, 3, 3), "head.bn2")


def _dense_layer(config: SpeakerConfig, stem: str, channels: int) -> Iterator[Conv | Norm]:
    inner = config.bottleneck
    yield Norm(f"{stem}.nonlinear1.batchnorm", channels)
    yield Conv(f"{stem}.linear1", (inner, channels, 1), f"{stem}.nonlinear2.batchnorm")
    yield Conv(f"{stem}.cam_layer.linear_local", (config.growth, inner, LOCAL_KERNEL))
    yield Conv(f"{stem}.cam_layer.linear1", (config.gate, inner, 1), bias=True)
    yield Conv(f"{stem}.cam_layer.linear2", (config.growth, config.gate, 1), bias=True)


def _statistics(name: str, channels: int, affine: bool) -> dict[str, Shape]:
    names = (*(("weight", "bias") if affine else ()), "running_mean", "running_var")
    return {f"{name}.{part}": (channels,) for part in names}
