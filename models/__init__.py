"""Torch definitions of what is re-traced, inference only; a package a model."""
