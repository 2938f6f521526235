"""Qwen3-TTS's 12 Hz speech decoder: codes to samples, in one piece and as a stateful streaming step; inference only."""
