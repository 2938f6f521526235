"""A small graph for each cut, as real generators have the place that it rewrites: the figures in docs/cuts.md are of
these.

Each stands between two convolutions, as in a generator: at the edge of a graph the compiler adds layers of its own. The
two that are about that edge end in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper, parser

SEED = 4
CHANNELS, STEPS = 128, 1200
"""Of most specimens: a vocoder's middle stage."""


@dataclass(frozen=True)
class Specimen:
    """A graph as text, and its weights.

    Attributes:
        where: where a real model has such a place.
        text: the graph in ONNX's textual syntax; it reads x.
        weights: shapes of seeded random weights, by name.
        constants: weights of given values, by name.
    """

    where: str
    text: str
    weights: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, object] = field(default_factory=dict)


def specimen_model(specimen: Specimen) -> onnx.ModelProto:
    """The graph of `specimen`; its weights are normal, scaled so that a layer's output is about as large as its
    input."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{specimen.text}')
    rng = np.random.default_rng(SEED)
    for name, shape in specimen.weights.items():
        values = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    for name, given in specimen.constants.items():
        array = np.asarray(given)
        kind = np.int64 if array.dtype.kind == "i" else np.float32
        model.graph.initializer.append(numpy_helper.from_array(array.astype(kind), name))
    return model


def _graph(
    body: str,
    sizes: Sequence[int] = (1, CHANNELS, STEPS),
    made: Sequence[int] = (1, CHANNELS, STEPS),
    beside: Mapping[str, Sequence[int]] | None = None,
) -> str:
    """The text of a graph of the nodes `body` from x, of these sizes, and inputs beside it, to y, `made`."""
    inputs = ", ".join(f"float[{','.join(map(str, of))}] {name}" for name, of in {"x": sizes, **(beside or {})}.items())
    return f"specimen ({inputs}) => (float[{','.join(map(str, made))}] y) {{\n{body}}}"


_BEFORE = "[before] h = Conv <kernel_shape = [3], pads = [1, 1]> (x, w_before)\n"
"""The convolution that makes h."""


def _behind(value: str) -> str:
    """The convolution that makes y of `value`."""
    return f"[behind] y = Conv <kernel_shape = [3], pads = [1, 1]> ({value}, w_behind)\n"


_ENDS = dict.fromkeys(("w_before", "w_behind"), (CHANNELS, CHANNELS, 3))


def _each(low: float, high: float, *sizes: int) -> object:
    """Constants from `low` to `high`, as a trained scale or shift has them."""
    return np.linspace(low, high, int(np.prod(sizes))).reshape(sizes)


_SCALE, _SHIFT = _each(0.5, 1.5, 1, CHANNELS, 1), _each(0.3, -0.4, 1, CHANNELS, 1)

_MASK = {"mask": (1, 1, STEPS)}
_MEAN_UNDER_MASK = "count = {mean} (mask{axes})\nkept = Mul (h, mask)\ntotal = {mean} (kept{axes})\n"
_NORM_UNDER_MASK = (
    "middle = Div (total, count)\n"
    "off = Sub (h, middle)\n"
    "d = Mul (off, mask)\n"
    "square = Mul (d, d)\n"
    "power = {mean} (square{axes})\n"
    "variance = Div (power, count)\n"
    "safe = Add (variance, epsilon)\n"
    "root = Sqrt (safe)\n"
    "normal = Div (d, root)\n"
)


def _masked(mean: str, axes: str = "") -> str:
    """A normalisation of h over the steps under a mask, by sums or pools."""
    body = _BEFORE + (_MEAN_UNDER_MASK + _NORM_UNDER_MASK).format(mean=mean, axes=axes) + _behind("normal")
    return _graph(body, beside=_MASK)


TOKENS, HEADS, HEAD_CHANNELS = 192, 2, 96
"""Of the text encoder of a Piper voice, in the wider of its two engines."""

HIDDEN = HEADS * HEAD_CHANNELS


def _heads(name: str) -> str:
    """The heads of the queries, keys or values, [1, HEADS, HEAD_CHANNELS, TOKENS]."""
    return f"{name}_all = Conv <kernel_shape = [1]> (h, w_{name})\n{name} = Reshape ({name}_all, heads)\n"


_PAIRS = (
    "real = Greater (mask, half)\n"
    "row = Cast <to = 1> (real)\n"
    "queries = Unsqueeze (row, three)\n"
    "keys = Unsqueeze (row, two)\n"
    "both = Mul (queries, keys)\n"
    "padding = Equal (both, zero)\n"
)
"""Which pairs of tokens hold padding, as VITS asks it."""

_ATTENTION = (
    "q_turned = Transpose <perm = [0, 1, 3, 2]> (q)\n"
    "product = MatMul (q_turned, k)\n"
    "scores = Mul (product, scale)\n"
    "masked = Where (padding, far, scores)\n"
    "attention = Softmax <axis = -1> (masked)\n"
    "v_turned = Transpose <perm = [0, 1, 3, 2]> (v)\n"
    "mixed = MatMul (attention, v_turned)\n"
    "turned = Transpose <perm = [0, 1, 3, 2]> (mixed)\n"
    "joined = Reshape (turned, whole)\n"
    "told = Add (joined, h)\n"
)

SPECIMENS: Mapping[str, Specimen] = {
    "rewrite_masked_choices": Specimen(
        "attention under a mask that chooses scores, in VITS's text encoder (Piper: 2 heads of 96, 192 tokens)",
        _graph(
            _BEFORE + _PAIRS + _heads("q") + _heads("k") + _heads("v") + _ATTENTION + _behind("told"),
            (1, HIDDEN, TOKENS),
            (1, HIDDEN, TOKENS),
            beside={"mask": (1, 1, TOKENS)},
        ),
        {**dict.fromkeys(_ENDS, (HIDDEN, HIDDEN, 3)), **{f"w_{name}": (HIDDEN, HIDDEN, 1) for name in "qkv"}},
        {
            "half": 0.5,
            "zero": 0.0,
            "far": -1e4,
            "scale": HEAD_CHANNELS**-0.5,
            "two": [2],
            "three": [3],
            "heads": [1, HEADS, HEAD_CHANNELS, TOKENS],
            "whole": [1, HIDDEN, TOKENS],
        },
    ),
    "fuse_layer_norm": Specimen(
        "LayerNorm over the channels by rsqrt, in the text encoders of Matcha-TTS and of Coqui's Glow-TTS and VITS",
        _graph(
            _BEFORE + "middle = ReduceMean <axes = [1]> (h)\n"
            "off = Sub (h, middle)\n"
            "square = Pow (off, two)\n"
            "variance = ReduceMean <axes = [1]> (square)\n"
            "safe = Add (variance, epsilon)\n"
            "root = Sqrt (safe)\n"
            "inverse = Div (one, root)\n"
            "normal = Mul (off, inverse)\n"
            "scaled = Mul (normal, gamma)\n"
            "shifted = Add (scaled, beta)\n" + _behind("shifted")
        ),
        _ENDS,
        {"two": 2.0, "one": 1.0, "epsilon": 1e-5, "gamma": _SCALE, "beta": _SHIFT},
    ),
    "fuse_instance_norm": Specimen(
        "InstanceNorm1d with trained scale and bias, as the affine one of Kokoro's AdaIN is exported",
        _graph(_BEFORE + "normal = InstanceNormalization <epsilon = 1e-05> (h, scale, bias)\n" + _behind("normal")),
        _ENDS,
        {"scale": _each(0.5, 1.5, CHANNELS), "bias": _each(0.3, -0.4, CHANNELS)},
    ),
    "rewrite_means_as_pools": Specimen(
        "an instance normalisation under the window's mask, by sums: a Kokoro generator that serves short utterances",
        _masked("ReduceSum", ", steps"),
        _ENDS,
        {"steps": [2], "epsilon": 1e-5},
    ),
    "rewrite_channel_differences": Specimen(
        "the same, by pools: what `rewrite_means_as_pools` leaves",
        _masked("GlobalAveragePool"),
        _ENDS,
        {"epsilon": 1e-5},
    ),
    "fold_batch_normalization": Specimen(
        "an upsampling by 10 (as Kokoro's first) with a BatchNormalization behind it",
        _graph(
            "[before] h = Conv <kernel_shape = [3], pads = [1, 1]> (x, w_before)\n"
            "up = ConvTranspose <kernel_shape = [20], strides = [10], pads = [5, 5]> (h, w_up)\n"
            "normal = BatchNormalization (up, scale, bias, mean, variance)\n"
            "bent = LeakyRelu <alpha = 0.1> (normal)\n" + _behind("bent"),
            (1, CHANNELS, STEPS // 10),
        ),
        {**_ENDS, "w_up": (CHANNELS, CHANNELS, 20)},
        {
            "scale": _each(0.5, 1.5, CHANNELS),
            "bias": _each(0.3, -0.4, CHANNELS),
            "mean": _each(-0.5, 0.5, CHANNELS),
            "variance": _each(0.5, 2.0, CHANNELS),
        },
    ),
    "fold_channel_flips": Specimen(
        "the flip between two couplings of a VITS flow (Piper: 192 channels)",
        _graph(
            _BEFORE + "flipped = Slice (h, start, end, channels, step)\n" + _behind("flipped"),
            (1, 192, 93),
            (1, 192, 93),
        ),
        dict.fromkeys(_ENDS, (192, 192, 3)),
        {"start": [-1], "end": [-(2**31)], "channels": [1], "step": [-1]},
    ),
    "fold_scales": Specimen(
        "the mean of three residual blocks ahead of the next upsampling, in every HiFi-GAN (Piper's second)",
        _graph(
            _BEFORE + "a = LeakyRelu <alpha = 0.1> (h)\n"
            "one = Conv <kernel_shape = [3], pads = [1, 1]> (a, w_1)\n"
            "two = Conv <kernel_shape = [5], pads = [2, 2]> (a, w_2)\n"
            "three = Conv <kernel_shape = [7], pads = [3, 3]> (a, w_3)\n"
            "some = Add (one, two)\n"
            "all = Add (some, three)\n"
            "mean = Div (all, count)\n"
            "bent = LeakyRelu <alpha = 0.1> (mean)\n"
            "up = ConvTranspose <kernel_shape = [4], strides = [2], pads = [1, 1]> (bent, w_up)\n" + _behind("up"),
            made=(1, CHANNELS, 2 * STEPS),
        ),
        {
            **_ENDS,
            **{f"w_{at}": (CHANNELS, CHANNELS, 1 + 2 * at) for at in (1, 2, 3)},
            "w_up": (CHANNELS, CHANNELS, 4),
        },
        {"count": 3.0},
    ),
    "fold_shifts": Specimen(
        "a sum of an upsampled signal, its source and a speaker's condition that is pinned (source-filter vocoders)",
        _graph(
            "[before] h = Conv <kernel_shape = [3], pads = [1, 1]> (x, w_before)\n"
            "up = ConvTranspose <kernel_shape = [4], strides = [2], pads = [1, 1]> (h, w_up)\n"
            "excited = Conv <kernel_shape = [1]> (source, w_source)\n"
            "both = Add (up, excited)\n"
            "told = Add (both, condition)\n"
            "bent = LeakyRelu <alpha = 0.1> (told)\n" + _behind("bent"),
            (1, CHANNELS, STEPS // 2),
            beside={"source": (1, 32, STEPS)},
        ),
        {**_ENDS, "w_up": (CHANNELS, CHANNELS, 4), "w_source": (CHANNELS, 32, 1)},
        {"condition": _SHIFT},
    ),
    "fuse_affine_steps": Specimen(
        "m + exp(logs) x, constants first as torch writes it: the elementwise affine step of VITS's duration flow",
        _graph(
            _BEFORE + "bound = Tanh (h)\nscaled = Mul (scale, bound)\nshifted = Add (shift, scaled)\n"
            "bent = LeakyRelu <alpha = 0.1> (shifted)\n" + _behind("bent")
        ),
        _ENDS,
        {"scale": _SCALE, "shift": _SHIFT},
    ),
    "rewrite_affine_as_depthwise": Specimen(
        "a pinned style's scale and shift behind a residual sum, ahead of a LeakyRelu (StyleTTS 2's blocks)",
        _graph(
            _BEFORE + "rectified = LeakyRelu <alpha = 0.2> (h)\n"
            "step = Conv <kernel_shape = [3], pads = [1, 1]> (rectified, w_step)\nsum = Add (h, step)\n"
            "scaled = Mul (sum, scale)\nshifted = Add (scaled, shift)\n"
            "bent = LeakyRelu <alpha = 0.2> (shifted)\n" + _behind("bent")
        ),
        {**_ENDS, "w_step": (CHANNELS, CHANNELS, 3)},
        {"scale": _SCALE, "shift": _SHIFT},
    ),
    "rewrite_constant_divisions": Specimen(
        "a gate's temperature, ahead of a Sigmoid, where no weights take it in",
        _graph(
            _BEFORE + "bound = Tanh (h)\ncooled = Div (bound, temperature)\ngate = Sigmoid (cooled)\n" + _behind("gate")
        ),
        _ENDS,
        {"temperature": 1.5},
    ),
    "rewrite_squares": Specimen(
        "the power of a spectrum, ahead of a filter bank",
        _graph(_BEFORE + "power = Pow (h, two)\n" + _behind("power")),
        _ENDS,
        {"two": 2.0},
    ),
    "rewrite_narrow_conv": Specimen(
        "what a HiFi-GAN ends in (Piper: 32 channels, a window of 60, as long as every target has fields for)",
        _graph(
            "h = ConvTranspose <kernel_shape = [4], strides = [2], pads = [1, 1]> (x, w_up)\n"
            "bent = LeakyRelu (h)\n"
            "sound = Conv <kernel_shape = [7], pads = [3, 3]> (bent, w_sound)\n"
            "y = Tanh (sound)\n",
            (1, 64, 128 * 60),
            (1, 1, 256 * 60),
        ),
        {"w_up": (64, 32, 4), "w_sound": (1, 32, 7)},
    ),
    "rewrite_transposed_conv": Specimen(
        "a HiFi-GAN's first upsampling, by 8 (Piper: 256 channels to 128, a window of 93)",
        _graph(
            "[before] h = Conv <kernel_shape = [7], pads = [3, 3]> (x, w_before)\n"
            "bent = LeakyRelu <alpha = 0.1> (h)\n"
            "up = ConvTranspose <kernel_shape = [16], strides = [8], pads = [4, 4]> (bent, w_up)\n" + _behind("up"),
            (1, 192, 93),
            (1, CHANNELS, 8 * 93),
        ),
        {"w_before": (256, 192, 7), "w_up": (256, CHANNELS, 16), "w_behind": (CHANNELS, CHANNELS, 3)},
    ),
    "rewrite_wide_conv_pad": Specimen(
        "11 taps dilated by 5, in a residual block of the last stage of Inflect's Micro (20 channels)",
        _graph(
            _BEFORE + "bent = LeakyRelu <alpha = 0.1> (h)\n"
            "wide = Conv <kernel_shape = [11], dilations = [5], pads = [25, 25]> (bent, w_wide)\n"
            "again = LeakyRelu <alpha = 0.1> (wide)\n" + _behind("again"),
            (1, 20, STEPS),
            (1, 20, STEPS),
        ),
        {**dict.fromkeys(_ENDS, (20, 20, 3)), "w_wide": (20, 20, 11)},
    ),
    "rewrite_interface_axes": Specimen(
        "what Kokoro's generator ends in: 22 rows of 7681 steps (W = 64)",
        _graph(_BEFORE + "bent = LeakyRelu <alpha = 0.1> (h)\n" + _behind("bent"), (1, 22, 7681), (1, 22, 7681)),
        dict.fromkeys(_ENDS, (22, 22, 3)),
    ),
}
"""By the name of the pass."""
