"""A small flow encoder to its engines, with the real toolkit, and a stream walked by the finished graphs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from rknn_tts_runtime.carried_state import State, walk_states

from contracts.manifest import Manifest, read_manifest
from contracts.verdicts import Status
from rknn_tts.outcome import Outcome
from tests.cosyvoice2_encoder import encoder, weights_of, write_flow
from tests.onnx_runs import open_session, snr_db
from tests.rknn_tts.workshop import Workshop, new_workshop

FOLDER = "engines/rk3588/small"
STEMS = {role: f"cosyvoice2-flow_encoder-t16+{ahead}-h64" for role, ahead in (("steady", 3), ("first", 1))}
CHUNK, HISTORY, LENGTH = 16, 64, 55

EXACT_DB, SIMULATOR_DB = 100.0, 40.0
"""The issue: 40 in the simulator."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = new_workshop(tmp_path_factory)
    folder = made.folder.parent / "small"
    folder.mkdir()
    write_flow(folder / "flow.pt")
    return made


@pytest.fixture(scope="module")
def built(workshop: Workshop) -> Outcome:
    checkpoint = str(workshop.folder.parent / "small")
    return workshop.run(
        "engine",
        family="cosyvoice2",
        stage="flow_encoder",
        target="rk3588",
        checkpoint=checkpoint,
        chunk=CHUNK,
        history=HISTORY,
    )


def manifest(workshop: Workshop, role: str) -> Manifest:
    return read_manifest(workshop.folder / FOLDER / f"{STEMS[role]}.json")


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("role", list(STEMS))
def test_engine_stays_on_the_npu_and_passes_its_gates(role: str, workshop: Workshop) -> None:
    found = manifest(workshop, role)
    assert not [verdict for verdict in found.verdicts if verdict.status is Status.FAILED]
    assert found.layers is not None
    assert found.layers.cpu == ()
    assert found.log.regtask == ()
    measured = {verdict.gate: verdict.measured for verdict in found.verdicts}
    assert isinstance(measured["simulator"], float)
    assert measured["simulator"] >= SIMULATOR_DB
    assert measured["structure.relative_shifts"] == 0
    assert len(found.state) == 3 + 2 * 3


@pytest.mark.usefixtures("built")
def test_finished_graphs_walk_a_stream_as_the_original_decodes_it(workshop: Workshop) -> None:
    folder = workshop.folder / FOLDER
    sessions = {role: open_session(onnx.load(folder / f"{stem}.onnx")) for role, stem in STEMS.items()}
    host = open_session(onnx.load(folder / "cosyvoice2-flow_encoder-host.onnx"))
    tokens = np.random.default_rng(1).integers(0, 40, (1, LENGTH))
    embedded = host({"tokens": tokens, "speaker": np.ones((1, 12), np.float32)})["embedded"]

    found = manifest(workshop, "steady")
    shapes = {spec.name: spec.shape for spec in found.inputs}
    states = [State(state.input, state.output, shapes[state.input]) for state in found.state]
    steps = []
    for start in range(0, LENGTH, CHUNK):
        seen = CHUNK + (3 if start else 1)
        part = embedded[..., start : start + seen]
        empty = seen - part.shape[3]
        mask = np.pad(np.ones((1, 1, 1, part.shape[3]), np.float32), ((0, 0), (0, 0), (0, 0), (0, empty)))
        steps.append({"embedded": np.pad(part, ((0, 0), (0, 0), (0, 0), (0, empty))), "mask": mask})
    by_width = {CHUNK + 3: sessions["steady"], CHUNK + 1: sessions["first"]}
    walk = walk_states(lambda inputs: by_width[inputs["embedded"].shape[3]](inputs), states, steps)
    got = np.concatenate([outputs["mu"] for outputs in walk], axis=3)[..., : 2 * LENGTH]

    rows = torch.from_numpy(weights_of()["input_embedding.weight"][tokens])
    assert snr_db(encoder()(rows, CHUNK, [1]).numpy()[:, :, None], got) >= EXACT_DB


@pytest.mark.usefixtures("built")
def test_what_is_built_is_a_set(workshop: Workshop) -> None:
    members = workshop.json(f"{FOLDER}/cosyvoice2-flow_encoder.set.json")["members"]
    assert members == [f"{stem}.json" for stem in STEMS.values()]
