"""Kokoro-82M: tokens and a style to samples (StyleTTS 2 with an iSTFTNet generator), inference only."""
