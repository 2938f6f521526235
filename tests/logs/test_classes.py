"""The class of each line."""

from __future__ import annotations

import pytest

from logs.classes import classify
from logs.known_texts import FAILING, KNOWN_TEXTS, LineClass
from tests.logs.build_logs import FALLBACK_TEXT, NO_KERNEL, RANDOM_WEIGHTS, STAMP, STRIDE, UNKNOWN_TARGET, ZERO_TENSOR


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("I rknn building ...", LineClass.STARTED),
        ("I rknn building done.", LineClass.DONE),
        ("D RKNN: [1:0:0.0] Reshape:I rknn building done.", LineClass.NOISE),
        ("I rknn building done. not", LineClass.NOISE),
        (STRIDE, LineClass.REGTASK),
        (f"W {STAMP} REGTASK: in a form nobody knows", LineClass.UNKNOWN_ERROR),
        ("REGTASK: in a form nobody knows", LineClass.UNKNOWN_ERROR),
        (f"D {STAMP} 4 Conv FLOAT16 NPU Conv:REGTASK", LineClass.NOISE),
        (RANDOM_WEIGHTS, LineClass.RANDOM_WEIGHTS),
        ("D Generate random data for test!", LineClass.RANDOM_WEIGHTS),
        (NO_KERNEL, LineClass.NO_KERNEL),
        (f"W {STAMP} {NO_KERNEL}", LineClass.NO_KERNEL),
        (ZERO_TENSOR, LineClass.BAD_TENSOR),
        (f"E {STAMP} invalid tensor malloc size", LineClass.BAD_TENSOR),
        (f"W {STAMP} invalid tensor reset size: 0", LineClass.NOISE),
        (UNKNOWN_TARGET, LineClass.UNKNOWN_TARGET),
        (f"E {STAMP} Unkown op target: 0 and something else", LineClass.UNKNOWN_ERROR),
        (f"E {STAMP} {FALLBACK_TEXT}", LineClass.FALLBACK),
        (f"E {STAMP} Deconv: Invalid stride of 3. Must be 1, 2, 4 or 8, fallback to CPU.", LineClass.FALLBACK),
        (f"E {STAMP} RKNPU Softmax axis:2 not support, fallback CPU implement", LineClass.FALLBACK),
        (
            f"E {STAMP} Transpose will fallback to CPU, because input shape has exceeded the max limit, pixels(9)",
            LineClass.FALLBACK,
        ),
        (f"W {STAMP} Pad: RKNPU not support mode edge, fallback CPU implement.", LineClass.FALLBACK),
        (f"E {STAMP} out of memory, fallback to cpu", LineClass.UNKNOWN_ERROR),
        (f"E {STAMP} Less: meet unsupport input elems: 1 vs 2, fallback to cpu", LineClass.FALLBACK),
        (f"E {STAMP} something new", LineClass.UNKNOWN_ERROR),
        ("E build: Traceback (most recent call last):", LineClass.UNKNOWN_ERROR),
        ("E load_onnx: The input shape ['N', 'T'] of 'tokens' is not support!", LineClass.UNKNOWN_ERROR),
        ("E", LineClass.UNKNOWN_ERROR),
        ("E rknn-toolkit2 version: 2.3.2", LineClass.NOISE),
        ("2026-11-29 15:59:34.154365009 [E:onnxruntime:, inference_session.cc:2044] no", LineClass.UNKNOWN_ERROR),
        ("2026-11-29 15:59:34.154365009 [W:onnxruntime:, graph.cc:1] slow", LineClass.NOISE),
        (f"W {STAMP} Failed to config layer: 'Conv:c' using 2Core fallback to single core mode,", LineClass.NOISE),
        (f"W {STAMP} Warning: Tensor z need parameter qtype, type is set to float16 by default!", LineClass.NOISE),
        ("W load_onnx: The config.mean_values is None, zeros will be set for input 0!", LineClass.NOISE),
        ("Exporting", LineClass.NOISE),
        ("", LineClass.NOISE),
    ],
)
def test_classify_gives_the_class_of_a_line(line: str, kind: LineClass) -> None:
    assert classify(line.strip()).kind is kind


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (UNKNOWN_TARGET, "Unkown op target: 0"),
        (f"E {STAMP} {FALLBACK_TEXT}", FALLBACK_TEXT),
        ("E build: no", "build: no"),
        ("I RKNN: librknnc version: 2.3.2", "librknnc version: 2.3.2"),
    ],
)
def test_classify_takes_level_and_time_from_the_message(line: str, message: str) -> None:
    assert classify(line.strip()).message == message


def test_classify_names_node_and_operator_when_a_kernel_is_missing() -> None:
    line = classify("No lowering found for: a, b, node type = Atan, use CustomOperatorLower instead.")
    assert dict(line.groups) == {"node": "a, b", "op": "Atan"}


def test_known_texts_state_reason_and_evidence() -> None:
    assert all(known.reason and known.evidence and known.needle for known in KNOWN_TEXTS)


def test_no_row_of_the_table_lets_an_error_pass_as_text_that_merely_holds_it() -> None:
    for known in KNOWN_TEXTS:
        if known.kind not in FAILING:
            assert classify(f"E {STAMP} a new error; {known.needle}").kind is LineClass.UNKNOWN_ERROR
