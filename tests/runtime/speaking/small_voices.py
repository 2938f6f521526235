"""Small voices as a board gets them: twins of engines with manifests, host halves and plans, as they are exported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from rknn_tts_runtime.backends.host_session import HostSession
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaking.speaker import Asked, Speaker
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from contracts.contract import Source
from contracts.files import sha256_of
from converters.piper.decoder import open_decoder
from converters.piper.duration_encoder import open_encoder
from converters.stages import Checkpoint, StageExport, StageOptions
from converters.vits_ladder import roles_of
from tests.converters.duration_voices import settings, tokens
from tests.finished_exports import reshaped
from tests.onnx_runs import Array, open_session, run
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model, write_voice

SPOKEN = (0.667, 1.0, 0.8)
"""What small voices speak with (their JSON)."""


def piper_engines(
    folder: Path,
    recipe: Recipe,
    windows: tuple[int, ...] = (109,),
    widths: str = "",
    config: Any = None,
    ladder: str | None = None,
) -> Path:
    """Engines of the voice of `recipe` in the empty `folder`: masked decoders, and duration encoders of `widths`.

    With a `ladder` ("80m,144t") the decoders are its rungs.
    """
    path = write_voice(folder / "voice.onnx", recipe, config)
    checkpoint = Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"))
    asked = [StageOptions(window=window, decoder_mask=True) for window in windows]
    for options in asked if ladder is None else [StageOptions(windows=ladder)]:
        decoders = open_decoder(checkpoint, options, open_session)
        for role in roles_of(options):
            write_export(folder, decoders(role))
    if widths:
        opened = open_encoder(checkpoint, replace(StageOptions(), widths=widths), open_session)
        for width in widths.split(","):
            write_export(folder, opened(f"n{width}"))
    return folder


def write_export(folder: Path, export: StageExport) -> None:
    """The engine of `export` with its manifest, twin and host half; one with a window is said to take frames / 4 ms."""
    model = export.model
    passes = []
    for bound in export.passes:  # what else the toolkit needs, onnxruntime does not
        done = bound.rewrite(model)
        model = done.model
        passes.append({"name": bound.declaration.name, "hits": done.hits})
    added = export.added_inputs[0] if export.added_inputs else {}
    given = run(model, reshaped(model, {**export.feeds[0], **added}))
    for value in model.graph.outputs:
        value.shape = ir.Shape(given[str(value.name)].shape)
    ir.save(model, folder / f"{export.stem}.onnx")
    (folder / f"{export.stem}.rknn").write_bytes(b"RKNN")
    if export.host is not None:
        ir.save(export.host, folder / export.host_file)
    contract, window = export.contract, export.contract.window

    def file(name: str) -> dict[str, Any]:
        data = (folder / name).read_bytes()
        return {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}

    manifest = {
        "schema": "rknn-tts/engine/1",
        "family": contract.family,
        "stage": contract.stage,
        "target": "rk3588",
        "toolkit": {"name": "rknn-toolkit2", "version": "2.3.2"},
        "source": {"name": contract.source.name, "sha256": contract.source.sha256, "kind": contract.source.kind},
        "engine": file(f"{export.stem}.rknn"),
        "onnx": file(f"{export.stem}.onnx"),
        "host": None if export.host is None else file(export.host_file),
        "inputs": tensors(model.graph.inputs),
        "outputs": tensors(model.graph.outputs),
        "role": contract.role,
        "passes": passes,
        "trim": contract.trim and {"input": contract.trim.input, "frames": contract.trim.frames},
        "layers": window and {"modelled_ms": window.frames / 4},
        "window": None
        if window is None
        else {key: getattr(window, key) for key in ("frames", "emitted", "left", "right", "hop", "sample_rate")},
    }
    (folder / f"{export.stem}.json").write_text(json.dumps(manifest), encoding="utf-8")


def edited(path: Path, **changes: Any) -> None:
    """Changes keys of the JSON in `path`."""
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**data, **changes}), encoding="utf-8")


def tensors(values: Any) -> list[dict[str, Any]]:
    """Inputs or outputs, as a manifest tells of them."""
    types = {ir.DataType.FLOAT: "float32", ir.DataType.INT64: "int64"}
    return [{"name": v.name, "shape": [int(n) for n in v.shape], "dtype": types[v.dtype]} for v in values]


def plan_of(folder: Path, option: str = "piper_tts.exec_plan", **components: Mapping[str, str]) -> Plan:
    """A plan of these components, each with its artifacts."""
    path = folder / "plan.json"
    plan = {name: {"impl": "rknn", "artifacts": dict(artifacts)} for name, artifacts in components.items()}
    path.write_text(json.dumps({option: plan}), encoding="utf-8")
    (found,) = read_plans(path).values()
    return found


def spoken(speaker: Speaker, asked: Asked) -> tuple[Array, list[Array], Stopwatch]:
    """All samples, the pieces that they came in, and the times."""
    stopwatch = Stopwatch()
    pieces = list(speaker.speak(asked, stopwatch))
    return np.concatenate(pieces), pieces, stopwatch


def recorded_feeds(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Array]]]:
    """What host halves and twins are fed from now on: the file's name, and the feed."""
    feeds: list[tuple[str, dict[str, Array]]] = []
    through = HostSession.run

    def recording(self: HostSession, outputs: Any, feed: Mapping[str, Array]) -> dict[str, Array]:
        feeds.append((self.path.name, dict(feed)))
        return through(self, outputs, feed)

    monkeypatch.setattr(HostSession, "run", recording)
    return feeds


def said_by_the_voice(
    recipe: Recipe, ids: list[int], fed: Mapping[str, Array], speaker: int = 0, speed: float = 1.0
) -> Array:
    """What the voice says as it was written, on the noise that its host half was `fed`, whole."""
    model = voice_model(recipe)
    drawn = [node for node in model.graph.node if node.op_type == "RandomNormalLike"]
    names = [name for name in fed if name.startswith("noise_")]
    noise_scale, length_scale, noise_width = SPOKEN
    feed = {**tokens(ids), **settings((noise_scale, length_scale / speed, noise_width))}
    feed.update(sid=np.array([speaker], np.int64), lid=np.zeros(1, np.int64))
    feed["prosody_features"] = np.zeros((1, len(ids), 3), np.int64)
    # The draws become inputs; a graph's input must be of the very size, and how many frames that is, a first run tells.
    for node, name in zip(drawn, names, strict=True):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None, None]))
        node.op_type, node.output[0] = "Identity", node.output[0]
        node.input[0] = name
        del node.attribute[:]
    # Durations take two channels, an encoder's noise what is inside it.
    channels = {"noise_duration": 2, "noise_duration_0": recipe.hidden, "noise_duration_1": 2}
    feed.update({name: fed[name][:, : channels[name], : len(ids)] for name in names if name != "noise_latent"})
    feed["noise_latent"] = np.zeros((1, 1, 1), np.float32)
    wanted = [value.name for value in model.graph.input]
    frames = run(model, {name: feed[name] for name in wanted})["output"].size // recipe.hop
    feed["noise_latent"] = fed["noise_latent"][:, :, :frames]
    return run(model, {name: feed[name] for name in wanted})["output"].reshape(-1)
