"""What the tests of whole commands share: a small voice, and what `engine` and `export` make of it."""

from __future__ import annotations

import pytest

from rknn_tts.outcome import Outcome
from tests.rknn_tts.workshop import Workshop, new_workshop
from tests.vits_writer.voice import write_voice


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = new_workshop(tmp_path_factory)
    write_voice(made.folder.parent / "mini.onnx")
    return made


@pytest.fixture(scope="module")
def voice(workshop: Workshop) -> str:
    return str(workshop.folder.parent / "mini.onnx")


@pytest.fixture(scope="module")
def built(workshop: Workshop, voice: str) -> Outcome:
    return workshop.build(checkpoint=voice)


@pytest.fixture(scope="module")
def exported(workshop: Workshop, voice: str) -> Workshop:
    """A folder that holds what `export` wrote, and nothing else."""
    made = workshop.beside("exported")
    made.run("export", family="piper", checkpoint=voice, target="rk3588")
    return made
