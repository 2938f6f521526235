"""A small flow to its engines with the real toolkit: what it fuses, what is left on the CPU, and padding in fp16."""

from __future__ import annotations

from collections import Counter

import pytest

from contracts.manifest import Manifest, read_manifest
from contracts.verdicts import Status
from rknn_tts.outcome import Outcome
from tests.cosyvoice3_files import SIMULATED, weights_of, write_flow
from tests.rknn_tts.workshop import Workshop, new_workshop

FOLDER = "engines/rk3588/small"
LENGTHS = (24, 40)
SIMULATOR_DB = 50.0
"""The issue asks for 40; 56 measured, and 61 at the published width: what leaves a time's angles to fp16 has 33."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = new_workshop(tmp_path_factory)
    folder = made.folder.parent / "small"
    folder.mkdir()
    write_flow(folder / "flow.pt", weights_of(SIMULATED))
    return made


@pytest.fixture(scope="module")
def built(workshop: Workshop) -> Outcome:
    checkpoint = str(workshop.folder.parent / "small")
    lengths = ",".join(map(str, LENGTHS))
    return workshop.run("engine", family="cosyvoice3", target="rk3588", checkpoint=checkpoint, lengths=lengths)


def manifest(workshop: Workshop, length: int) -> Manifest:
    return read_manifest(workshop.folder / FOLDER / f"cosyvoice3-flow-s{length}.json")


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("length", LENGTHS)
def test_an_engine_passes_its_gates(workshop: Workshop, length: int) -> None:
    found = manifest(workshop, length)
    assert not [verdict for verdict in found.verdicts if verdict.status is Status.FAILED]
    assert found.log.regtask == ()
    measured = {verdict.gate: verdict.measured for verdict in found.verdicts}
    assert isinstance(measured["simulator"], float)
    assert measured["simulator"] >= SIMULATOR_DB
    assert {f"fp32.padded_n{real}" for real in (1, length - 1, length)} <= measured.keys()


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("length", LENGTHS)
def test_only_a_times_few_numbers_are_on_the_cpu(workshop: Workshop, length: int) -> None:
    layers = manifest(workshop, length).layers
    assert layers is not None
    assert sorted(layer.op for layer in layers.cpu) == ["Floor", "Reshape", "Sin"]
    assert all(layer.rw_kb <= 1.0 for layer in layers.cpu)


@pytest.mark.usefixtures("built")
def test_attention_norms_and_activations_are_one_layer_each(workshop: Workshop) -> None:
    layers = manifest(workshop, LENGTHS[0]).layers
    assert layers is not None
    assert layers.file is not None
    counts = Counter(layer["op"] for layer in workshop.json(layers.file))
    assert counts["exSDPAttention"] == 2 * SIMULATED.depth
    assert counts["exNorm"] == 2 * SIMULATED.depth + 1
    assert counts["ConvExGelu"] == SIMULATED.depth
    assert counts["exMish"] == 2
    assert counts["exSoftmax13"] == counts["Softmax"] == counts["Tanh"] == 0


@pytest.mark.usefixtures("built")
def test_a_ladder_is_a_set(workshop: Workshop) -> None:
    members = workshop.json(f"{FOLDER}/cosyvoice3-flow.set.json")["members"]
    assert members == [f"cosyvoice3-flow-s{length}.json" for length in LENGTHS]
