"""What `python -m rknn_tts_runtime` can do, a module a command."""
