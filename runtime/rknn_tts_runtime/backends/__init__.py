"""What runs an engine: the NPU of a board, or its ONNX twin in onnxruntime."""
