"""The default voice, a real one, to every target, and with the other version of the toolkit: what each leaves open."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contracts.targets import TARGETS
from contracts.verdicts import Status
from rknn_tts.steps import CHECKPOINTS_FOLDER
from tests.rknn_tts.workshop import Workshop, new_workshop

OTHER_TOOLKIT = "2.5.0"

UNPROVEN = {
    ("rk3562", "2.3.2"): set(),
    ("rk3566", "2.3.2"): {"0x4038", "0x5048"},
    ("rk3568", "2.3.2"): {"0x4038", "0x5048"},
    ("rk3576", "2.3.2"): {"0x1090"},
    ("rk3588", OTHER_TOOLKIT): {"0x4038", "0x5048"},
}
"""By target and toolkit, the offsets of the REGTASK fields that only a board can judge. rk3566 and rk3576: as the
reference's engines have them (family-facts, Piper decoder); rk3588 with the other toolkit: likewise."""

SIMULATOR_DB = 48.0
"""48.9 measured on each."""


@pytest.fixture(scope="module")
def workshop(fetched_voice: Path, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = new_workshop(tmp_path_factory)
    shutil.copytree(fetched_voice, made.cache / CHECKPOINTS_FOLDER / fetched_voice.name)
    return made


def test_every_target_is_built_here_or_in_the_test_of_the_real_voice() -> None:
    assert {target for target, _ in UNPROVEN} == set(TARGETS)


@pytest.mark.parametrize(("target", "toolkit"), UNPROVEN)
def test_default_voice_builds_with_no_failed_gate_and_no_layer_on_the_cpu(
    workshop: Workshop, target: str, toolkit: str
) -> None:
    place = workshop.beside(f"{target}-{toolkit}")
    outcome = place.run("engine", family="piper", target=target, toolkit=toolkit)
    assert not [verdict for verdict in outcome.verdicts if verdict.status is Status.FAILED]
    assert f"engines/{target}/piper-decoder-w109.rknn" in place.files()
    manifest = outcome.manifest
    assert manifest is not None
    assert manifest.layers is not None
    assert (manifest.target, manifest.toolkit.version, manifest.layers.cpu) == (target, toolkit, ())
    assert {field.offset for field in manifest.log.regtask} == UNPROVEN[target, toolkit]
    (simulator,) = (verdict.measured for verdict in outcome.verdicts if verdict.gate == "simulator")
    assert isinstance(simulator, float)
    assert simulator >= SIMULATOR_DB
