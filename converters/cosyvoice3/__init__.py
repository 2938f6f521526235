"""CosyVoice3: reading its flow estimator, a stand-in for it, and one engine of it a length."""
