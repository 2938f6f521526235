"""From an ONNX to an engine: the vendor toolkit in a child process, its targets, and the cache of finished steps."""
