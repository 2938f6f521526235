from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.bench.ratios import Table


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """The figures of a bench; at its end they are printed, and written to its REPORT."""
    table = Table()
    yield table
    sys.stdout.write(table.written(request.module.REPORT))
