"""Build logs of the kinds that the toolkit prints, made in code."""

from __future__ import annotations

START = "I rknn building ...\n"
END = "I rknn building done.\n"
STAMP = "RKNN: [12:00:00.000]"
UNKNOWN_TARGET = f"E {STAMP} Unkown op target: 0\n"
FALLBACK_TEXT = "channel is too large, may produce thousands of regtask, fallback to cpu!"


def regtask(target: str, offset: str, limit: str, value: str, shift: int = 0) -> str:
    """One REGTASK line."""
    return (
        f"E {STAMP} REGTASK: The bit width of field value exceeds the limit, target: {target}, offset: {offset}, "
        f"shift = {shift}, limit: {limit}, value: {value}\n"
    )


def whole(*lines: str) -> str:
    """A log that begins, holds `lines` and comes to its end."""
    return START + "".join(lines) + END


WIDE_ADDRESS = regtask("v2", "0x4038", "0x1fff", "0x528a")
STRIDE = regtask("v2", "0x1014", "0x7", "0xf")
NEW_FIELD = regtask("v2", "0x7abc", "0x3", "0x5")
RANDOM_WEIGHTS = "W load_onnx: Load external data for 'w' failed! Generate random data for test!\n"
NO_KERNEL = "No lowering found for: at, node type = Atan, use CustomOperatorLower instead.\n"
ZERO_TENSOR = f"E {STAMP} invalid tensor malloc size, tensor name: , target: CPU, size: 0\n"

REPORTED = {
    "log_clean": whole(),
    "log_unknown_target": whole(UNKNOWN_TARGET * 5),
    "log_fallback": whole(f"E {STAMP} {FALLBACK_TEXT}\n"),
    "log_stride_field": whole(STRIDE * 12),
    "log_wide_window": whole(regtask("v2", "0x4030", "0x1fff", "0x7800") * 88),
    "log_kokoro_rk3566": whole(regtask("lite", "0x1028", "0x7ff", "0x1e01") * 176),
    "log_piper_2_5_0": whole(
        regtask("v2", "0x4038", "0x1fff", "0x3d58") * 4,
        regtask("v2", "0x4038", "0x1fff", "0x3d58", shift=16) * 4,
        regtask("v2", "0x5048", "0x1fff", "0x3d58", shift=19) * 4,
    ),
    "log_wide_conv": whole(regtask("v2", "0x1028", "0x3fff", "0x7801") * 88),
    "log_flood": whole(WIDE_ADDRESS * 100_001),
    "log_new_field": whole(NEW_FIELD),
    "log_random_weights": RANDOM_WEIGHTS + END,
    "log_no_kernel": f"W {STAMP} {NO_KERNEL}" + END,
    "log_zero_tensor": ZERO_TENSOR + END,
    "log_cut_off": START + f"D {STAMP} RKNN is invoked\n",
    "log_ansi": START
    + f"\x1b[1;31mE\x1b[0m \x1b[1;31m{STAMP} Unkown op target: 0\x1b[0m\rI OpFusing 0:  50%\r\n"
    + END,
}
"""The 15 logs of the cases file."""
