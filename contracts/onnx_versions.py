"""The ONNX that the converter's side reads: versions, and names."""

from __future__ import annotations

HIGHEST_OPSET = 19
"""The toolkit's highest opset (toolkit-facts, Operators): 20 is refused by name."""

HIGHEST_IR_VERSION = 10
"""What onnx 1.16 and onnxruntime 1.18 of the converter environment read: 11 builds, and then does not load there."""

LONGEST_NAME = 127
"""Of an input or output, in characters: the toolkit cuts a longer one off and then looks for it in vain (KeyError).
Other tensors and nodes may have names of any length (measured, 2.3.2)."""
