"""Kokoro: reading its checkpoints (the official `.pth`, and ONNX exports of it), its seam, its host half."""
