"""CosyVoice2-0.5B: the modules that become engines, inference only."""
