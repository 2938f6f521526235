"""The engine of a speech head, and what the gates compare it with.

fp32.export      the graph in onnxruntime against the product in float64
fp32.finished    the finished graph against it
quality.*        the simulator's logits against onnxruntime's on the finished graph: angle, and the token that is chosen

It is a convolution of kernel one over an image of one place: as a Gemm, the toolkit puts Reshapes around the same
convolution, one of them on the CPU (measured, 2.3.2, rk3588).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from contracts.contract import Contract, Source, TensorSpec
from contracts.quality import Quality
from contracts.quantisation import FP16
from contracts.seed import SEED
from converters.cosyvoice2.speech_head_file import SpeechHead
from converters.cosyvoice2.speech_head_stand_in import hidden_states
from converters.precision import Precision
from converters.stages import Array, Equality, Evidence, Expectation, OpenSession, StageExport, StageOptions

HIDDEN, LOGITS = "hidden", "logits"
STEM = "cosyvoice2-speech_head"

PRODUCT_DB = 110.0
"""Least SNR of float32 sums of 896 products against those in float64: 132 dB measured."""

REAL_COSINE, SYNTHETIC_COSINE = 0.9999, 0.9998
"""Least cosine between logits in 8 bits and in fp32, on hidden states of a checkpoint and on seeded ones: the reference
measures 0.99995 on a board, and a head of normal weights 0.99984 to 0.99986 in the simulator. fp16 owes the former on
either: it has more than 0.999999."""

CALIBRATED, JUDGED = 100, 64
"""Seeded hidden states that ranges are found on, as many as the vendor recommends at most (`converters.precision`), and
others that the engine is judged on."""

HELD_OUT = 8
"""Of the hidden states in a file, one in so many is judged on."""

LEAST_GIVEN = 56
"""Fewest in a file that ranges are found on: eight more are judged on then."""

_OPSET, _IR_VERSION = 17, 8

_NO_GAIN = (
    "the checkpoint has no norm of its language model, so seeded hidden states have a root mean square of one, which "
    "says nothing of the ranges that real ones have"
)


def precision_of(default: str) -> Precision:
    """What the stage says of its precisions."""
    return Precision(default=default, least_windows=LEAST_GIVEN, held_out=HELD_OUT)


def head_model(head: SpeechHead) -> ir.Model:
    """hidden [1, D, 1, 1] to logits [1, V, 1, 1]."""
    logits, hidden = head.weight.shape
    weights = {"weight": head.weight[:, :, None, None]}
    if head.bias is not None:
        weights["bias"] = head.bias
    graph = helper.make_graph(
        [helper.make_node("Conv", [HIDDEN, *weights], [LOGITS], name="llm_decoder", kernel_shape=[1, 1])],
        "speech_head",
        [helper.make_tensor_value_info(HIDDEN, TensorProto.FLOAT, [1, hidden, 1, 1])],
        [helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, [1, logits, 1, 1])],
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return ir.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION))


def multiplied(head: SpeechHead, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logits [V] of the hidden state [D], in float64 but for their last rounding."""
    logits = head.weight.astype(np.float64) @ hidden.astype(np.float64)
    return np.asarray(logits if head.bias is None else logits + head.bias, np.float32)


def figures(precision: str, calibration: str | None) -> tuple[Quality, ...]:
    """What the simulator's logits are judged by: their angle, and what is chosen by them."""
    synthetic = precision != FP16 and calibration is None
    least = SYNTHETIC_COSINE if synthetic else REAL_COSINE
    remark = "of seeded hidden states, for want of real ones" if calibration is None else "of hidden states of the file"
    more = "" if precision == FP16 else f"; --precision {FP16} keeps more"
    return (
        Quality("logits_cosine", LOGITS, least, remark=f"{remark}{more}"),
        Quality("logits_cosine_mean", LOGITS, remark=remark),
        Quality("logits_top1", LOGITS, remark=remark),
    )


def head_export(
    head: SpeechHead, source: Source, note: str, options: StageOptions, precision: str, open_session: OpenSession
) -> StageExport:
    """The engine of `head`, built in `precision`."""
    model = head_model(head)
    logits, hidden = head.weight.shape
    gain = np.ones(hidden, np.float32) if head.gain is None else head.gain

    def drawn(count: int, purpose: str) -> tuple[dict[str, Array], ...]:
        states = hidden_states(gain, count, purpose, SEED)
        return tuple({HIDDEN: state.reshape(1, hidden, 1, 1)} for state in states)

    judged = drawn(JUDGED, "the judgement")

    def evidence() -> Evidence:
        runs = [
            (feed, {LOGITS: _as_output(multiplied(head, np.asarray(feed[HIDDEN], np.float32).ravel()))})
            for feed in judged[:2]
        ]
        exported = open_session(model)
        told = f"logits of {hidden} numbers against the checkpoint's product in float64"
        return Evidence(
            equalities=(Equality("fp32.export", runs[0][1], exported(runs[0][0]), PRODUCT_DB, f"the graph's {told}"),),
            expectations=(Expectation("fp32.finished", tuple(runs), PRODUCT_DB, f"the finished graph's {told}"),),
        )

    return StageExport(
        stem=STEM,
        contract=Contract(
            family="cosyvoice2",
            stage="speech_head",
            source=source,
            inputs=(TensorSpec(HIDDEN, (1, hidden, 1, 1)),),
            outputs=(TensorSpec(LOGITS, (1, logits, 1, 1)),),
            quality=figures(precision, options.calibration),
        ),
        model=model,
        passes=(),
        feeds=judged,
        padded_feeds=(),
        host=None,
        host_file="",
        notes=(*((note,) if note else ()), *((_NO_GAIN,) if head.gain is None else ())),
        evidence=evidence,
        calibration=drawn(CALIBRATED, "calibration"),
    )


def _as_output(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    return logits.reshape(1, -1, 1, 1)
