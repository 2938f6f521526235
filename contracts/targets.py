"""The chips an engine can be built for."""

from __future__ import annotations

TARGETS = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588")

EVERY_TARGET = frozenset(TARGETS)


def check_target(target: str | None) -> None:
    """Check that `target` is one of `TARGETS`, or None where a graph is for all of them.

    Raises:
        ValueError: nothing is known of it; the message names those that are known.
    """
    if target not in (None, *TARGETS):
        raise ValueError(f"nothing is known of the target {target}: it has to be one of {', '.join(TARGETS)}")
