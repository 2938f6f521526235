"""Piper: VITS voices as one ONNX (ids to samples) with a JSON of the same name beside it."""
