"""Families: how each checkpoint is read, cut at its seam, and what its gates compare it with (see `stages`)."""
