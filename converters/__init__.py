"""Families: how each checkpoint is read, cut at its seam, and what its gates compare. See `stages` for the interface."""
