"""The versions of ONNX that the converter's side reads."""

from __future__ import annotations

HIGHEST_OPSET = 19
"""The toolkit's highest opset (toolkit-facts, Operators): 20 is refused by name."""

HIGHEST_IR_VERSION = 10
"""What onnx 1.16 and onnxruntime 1.18 of the converter environment read: 11 builds, and then does not load there."""
