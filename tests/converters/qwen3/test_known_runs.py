from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from contracts.verdicts import Status
from converters.qwen3.step_engine import step_export
from converters.stages import Array, Session
from rknn_tts.export_step import prove
from surgery.declaration import Rewritten
from surgery.normalise_header import normalise_header
from tests.converters.qwen3.openings import open_small, write_small
from tests.onnx_runs import open_session

torch = pytest.importorskip("torch")


def test_gates_run_each_step_once_and_a_square_as_a_product(tmp_path: Path) -> None:
    opened: list[ir.Model] = []
    runs: Counter[tuple[int, bytes]] = Counter()

    def opening_session(model: ir.Model) -> Session:
        number = len(opened)
        opened.append(model)
        session = open_session(model)

        def run(feed: Mapping[str, Array]) -> dict[str, Array]:
            runs[number, b"".join(np.ascontiguousarray(array).tobytes() for array in feed.values())] += 1
            return session(feed)

        return run

    opening = open_small(write_small(tmp_path), codes="64")
    opening.open_session = opening_session
    export = step_export(opening, "main")
    header = normalise_header()
    rewritten: list[Rewritten] = [header.rewrite(export.model)]
    proof = prove(export, [header], rewritten, opening_session)
    statuses = {verdict.gate: verdict.status for verdict in proof.verdicts}
    assert {"pass.normalise_header", "fp32.stepwise", "fp32.export", "fp32.finished"} <= statuses.keys()
    assert set(statuses.values()) == {Status.PASSED}
    assert max(runs.values()) == 1
    # Four steps of 64 for 193 codes, the second of them a feed of its own too; one from a start; the host half.
    assert sum(runs.values()) == 4 + 1 + 1
    step = opened[0]
    assert not any(node.op_type == "Pow" for node in step.graph)
    assert any(node.op_type == "Pow" for node in export.model.graph)
