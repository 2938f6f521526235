"""What tests of the farm share."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.setup import ensure

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def farm_python() -> Path:
    """The Python of the farm's own environment, which is made where it is not there."""
    return ensure(ROOT, "farm")
