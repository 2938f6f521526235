"""A small speaker encoder of the published file to its engine with the real toolkit: several segments of gates."""

from __future__ import annotations

import pytest

from contracts.manifest import read_manifest
from contracts.verdicts import Status
from tests.cosyvoice2_speaker import published, save
from tests.rknn_tts.workshop import new_workshop


def test_engine_of_the_published_file_stays_on_the_npu_and_passes_its_gates(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    workshop = new_workshop(tmp_path_factory)
    folder = workshop.folder.parent / "small"
    folder.mkdir()
    save(published(), folder / "campplus.onnx")
    workshop.run("engine", family="cosyvoice2", stage="speaker", target="rk3588", checkpoint=str(folder), lengths="400")
    found = read_manifest(workshop.folder / "engines/rk3588/small/cosyvoice2-speaker-t400.json")
    assert not [verdict for verdict in found.verdicts if verdict.status is Status.FAILED]
    measured = {verdict.gate: verdict.measured for verdict in found.verdicts}
    assert {"fp32.published", "quality.embedding_cosine", "simulator"} <= measured.keys()
    cosine = measured["quality.embedding_cosine"]
    assert isinstance(cosine, float)
    assert cosine >= 0.9999  # the issue
    assert found.layers is not None
    assert found.layers.cpu == ()
    assert found.log.regtask == ()
    assert [item.figure for item in found.quality] == ["embedding_cosine"]
