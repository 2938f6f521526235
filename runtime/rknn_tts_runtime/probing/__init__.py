"""Probes: a kit of engines with what they must give, run on a board, and what came out of it signed off."""
