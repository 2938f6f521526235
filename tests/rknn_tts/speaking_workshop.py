"""A workshop whose toolkit is a stand-in that simulates: it runs the graph in onnxruntime, a little too loud."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.rknn_tts.stand_in_converter import GOOD_LOG, write_converter
from tests.rknn_tts.workshop import Workshop, new_workshop
from tests.vits_writer.voice import voice_json, write_voice

TOO_LOUD = 1.001
"""What the stand-in's simulator makes of a sample: an error of 60 dB."""

TOO_LOUD_DB = 60.0

SIMULATING = f"""
print({GOOD_LOG!r}, end="", flush=True)
import numpy as np, onnxruntime
onnxruntime.set_default_logger_severity(4)
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
given = json.loads((folder / "request.json").read_text())["feeds"]
made = {{}}
with np.load("feeds.npz") as feeds:
    for window in range(given["windows"]):
        feed = {{name: feeds[f"{{window}}_{{index}}"] for index, name in enumerate(given["names"])}}
        for index, array in enumerate(session.run(None, feed)):
            made[f"{{window}}_{{index}}"] = array * np.float32({TOO_LOUD})
np.savez("simulated.npz", **made)
(folder / "engine.rknn").write_bytes(b"RKNN" + bytes(60) + (folder / "model.onnx").read_bytes())
(folder / "result.json").write_text(json.dumps({{"step": "done", "outputs": ["audio"]}}))
"""

IDS = [1, 0, *(i for _ in range(40) for i in (12, 0, 20, 0)), 2]
"""Several windows long."""


@contextmanager
def speaking_workshop(factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """A workshop with that stand-in, and the small voice `mini.onnx` in the folder around it.

    Without noise the voice says the same each time, and a test knows what.
    """
    made = new_workshop(factory)
    root = made.folder.parent
    write_converter(root / "converter", SIMULATING)
    inference = {"noise_scale": 0.0, "length_scale": 1.0, "noise_w": 0.0}
    write_voice(root / "mini.onnx", config={**voice_json(), "inference": inference})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(root / "converter"))
        yield made
