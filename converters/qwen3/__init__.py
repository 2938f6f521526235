"""Qwen3-TTS: reading snapshots of its speech tokenizer, stand-ins for them, the streaming step of its decoder."""
