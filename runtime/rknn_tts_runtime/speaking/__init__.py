"""Whole voices: a host half, engines and their walks together."""
