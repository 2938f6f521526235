"""The chips an engine can be built for."""

from __future__ import annotations

TARGETS = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588")

EVERY_TARGET = frozenset(TARGETS)
