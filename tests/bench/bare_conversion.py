"""The least that makes an engine of an ONNX: load, build, export, with the toolkit's own defaults.

    CONVERTER_PYTHON bare_conversion.py TORCH_STANDIN.py MODEL.onnx TARGET ENGINE.rknn

Runs in the converter environment. No log, no gates, no simulator.
"""

from __future__ import annotations

import importlib.util
import sys


def main(standin: str, onnx: str, target: str, engine: str) -> None:
    """Make the engine; AssertionError where the toolkit says no."""
    spec = importlib.util.spec_from_file_location("torch_standin", standin)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install()
    from rknn.api import RKNN

    toolkit = RKNN()
    assert toolkit.config(target_platform=target) == 0
    assert toolkit.load_onnx(onnx) == 0
    assert toolkit.build(do_quantization=False) == 0
    assert toolkit.export_rknn(engine) == 0
    toolkit.release()


if __name__ == "__main__":
    main(*sys.argv[1:])
