"""CosyVoice3's flow estimator, a diffusion transformer, and the form of it that an NPU runs."""
