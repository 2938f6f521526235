"""CosyVoice2-0.5B: its release's files to what becomes engines, stage by stage."""
