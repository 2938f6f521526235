"""A speech decoder that is small enough to decode by hand, as twins and host half: a causal filter over codes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.plans.reading import read_plans

from tests.gates.small_graphs import constant, proto, tensor

QUANTIZERS, ENTRIES, CHANNELS, TAPS, RATE = 2, 8, 3, 4, 6
"""Codebooks, their entries, channels of `hidden`, codes that a sample hears, samples a code."""

PAST = TAPS - 1
NUMEL = CHANNELS * PAST
SAMPLE_RATE = 24000

_DRAW = np.random.default_rng(9)
TABLES = _DRAW.normal(0, 1, (QUANTIZERS, ENTRIES, CHANNELS)).astype(np.float32)
FILTER = _DRAW.normal(0, 1, (RATE, CHANNELS, TAPS)).astype(np.float32)


def drawn_codes(length: int) -> NDArray[np.int64]:
    return np.random.default_rng(length).integers(0, ENTRIES, (1, QUANTIZERS, length))


def decoded(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The samples of all codes at once, in float64: each code hears itself and the three before it."""
    hidden = sum(TABLES[each][codes[0, each]].astype(np.float64) for each in range(QUANTIZERS))
    behind = np.concatenate([np.zeros((PAST, CHANNELS)), hidden])
    windows = np.stack([behind[start : start + TAPS] for start in range(codes.shape[-1])])
    samples: NDArray[np.float64] = np.einsum("nkc,rck->nr", windows, FILTER.astype(np.float64)).reshape(-1)
    return samples


def written_step(folder: Path, role: str, codes: int, context: int = 0, seam: str = "hidden", **keys: Any) -> Path:
    """A step's twin and manifest in `folder`, beside an engine that is empty; `keys` change the manifest."""
    _save(folder / f"{role}.onnx", _step(codes, seam))
    _host(folder)
    engine = folder / f"{role}.rknn"
    engine.write_bytes(b"")
    taken = [1, QUANTIZERS, codes] if seam == "codes" else [1, CHANNELS, 1, codes]
    cache = [1, CHANNELS, 1, PAST]
    manifest = {
        "schema": "rknn-tts/engine/1",
        "family": "qwen3",
        "stage": "speech_decoder",
        "role": role,
        "target": "rk3588",
        "toolkit": {"version": "2.3.2"},
        "source": {"name": "random", "kind": "random", "sha256": "a" * 64},
        "onnx": {"file": f"{role}.onnx", "sha256": _digest(folder / f"{role}.onnx")},
        "engine": {"file": f"{role}.rknn", "sha256": "0" * 64, "bytes": 1},
        "host": {"file": "host.onnx", "sha256": _digest(folder / "host.onnx")} if seam == "hidden" else None,
        "inputs": [
            {"name": seam, "shape": taken, "dtype": "int64" if seam == "codes" else "float32"},
            {"name": "cache", "shape": cache, "dtype": "float32"},
        ],
        "outputs": [
            {"name": "audio", "shape": [1, 1, RATE * codes, 1], "dtype": "float32"},
            {"name": "cache_out", "shape": cache, "dtype": "float32"},
        ],
        "step": {
            "codes": codes,
            "samples_per_code": RATE,
            "sample_rate": SAMPLE_RATE,
            "context": context,
            "emitted": codes - context,
        },
        "cache": {"numel": NUMEL, "layout": [{"name": "past", "offset": 0, "shape": [CHANNELS, PAST]}]},
        **keys,
    }
    engine.with_suffix(".json").write_text(json.dumps(manifest), encoding="utf-8")
    return engine


def plan_of(folder: Path, **artifacts: str) -> Plan:
    """The plan that names these files."""
    value = {"speech_decoder": {"impl": "rknn", "artifacts": artifacts}}
    path = folder / "plan.json"
    path.write_text(json.dumps({"qwen3_tts.exec_plan": value}), encoding="utf-8")
    return read_plans(path)["qwen3"]


def _step(codes: int, seam: str) -> onnx.ModelProto:
    constants = [
        constant("columns", [1, CHANNELS, codes], np.int64),
        constant("past", [1, CHANNELS, PAST], np.int64),
        constant("kept_shape", [1, CHANNELS, 1, PAST], np.int64),
        constant("sound", [1, 1, RATE * codes, 1], np.int64),
        constant("start", [codes], np.int64),
        constant("stop", [codes + PAST], np.int64),
        constant("last_axis", [2], np.int64),
        constant("filter", FILTER, np.float32),
    ]
    nodes = [] if seam == "hidden" else _lookup(constants)
    nodes += [
        helper.make_node("Reshape", ["hidden", "columns"], ["new"]),
        helper.make_node("Reshape", ["cache", "past"], ["old"]),
        helper.make_node("Concat", ["old", "new"], ["all"], axis=2),
        helper.make_node("Conv", ["all", "filter"], ["by_code"]),
        helper.make_node("Transpose", ["by_code"], ["in_order"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["in_order", "sound"], ["audio"]),
        helper.make_node("Slice", ["all", "start", "stop", "last_axis"], ["kept"]),
        helper.make_node("Reshape", ["kept", "kept_shape"], ["cache_out"]),
    ]
    taken = (
        tensor("codes", [1, QUANTIZERS, codes], TensorProto.INT64)
        if seam == "codes"
        else tensor("hidden", [1, CHANNELS, 1, codes])
    )
    cache = [1, CHANNELS, 1, PAST]
    outputs = [tensor("audio", [1, 1, RATE * codes, 1]), tensor("cache_out", cache)]
    return proto(nodes, [taken, tensor("cache", cache)], outputs, constants)


def _host(folder: Path) -> None:
    constants: list[onnx.TensorProto] = []
    nodes = _lookup(constants)
    taken = tensor("codes", [1, QUANTIZERS, "N"], TensorProto.INT64)
    _save(folder / "host.onnx", proto(nodes, [taken], [tensor("hidden", [1, CHANNELS, "N"])], constants))


def _lookup(constants: list[onnx.TensorProto]) -> list[onnx.NodeProto]:
    """Nodes that make `hidden` [1, C, N] of `codes` [1, Q, N]; their constants are added."""
    constants += [constant(f"table_{each}", TABLES[each], np.float32) for each in range(QUANTIZERS)]
    constants += [constant("first_axis", [1], np.int64)]
    nodes = [helper.make_node("Split", ["codes"], ["codes_0", "codes_1"], axis=1)]
    for each in range(QUANTIZERS):
        nodes += [
            helper.make_node("Squeeze", [f"codes_{each}", "first_axis"], [f"row_{each}"]),
            helper.make_node("Gather", [f"table_{each}", f"row_{each}"], [f"entries_{each}"]),
        ]
    return [
        *nodes,
        helper.make_node("Add", ["entries_0", "entries_1"], ["summed"]),
        helper.make_node("Transpose", ["summed"], ["hidden"], perm=[0, 2, 1]),
    ]


def _save(path: Path, model: onnx.ModelProto) -> None:
    path.write_bytes(model.SerializeToString(deterministic=True))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
