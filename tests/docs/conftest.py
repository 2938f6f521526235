"""One workplace for all pages: the conversions are done once, and found again by the commands that repeat them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.workplace import (
    CHOIR,
    DURATIONS_COMMAND,
    ENGINE_COMMAND,
    ONE_WINDOW_COMMAND,
    Ran,
    Workplace,
    make_workplace,
)


@pytest.fixture(scope="session")
def workplace(fetched_voice: Path, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A working copy in which the first commands of the README have been run."""
    made = make_workplace(tmp_path_factory.mktemp("workplace"), fetched_voice)
    for command in (ENGINE_COMMAND, ONE_WINDOW_COMMAND):
        first = made.run(command)
        assert first.code == 0, first.output
    return made


@pytest.fixture(scope="session")
def masked(workplace: Workplace) -> Ran:
    """The default voice with a masked decoder, which has gates that the default has not."""
    done = workplace.run(f"{ENGINE_COMMAND} DECODER_MASK=1")
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="session")
def choir(workplace: Workplace) -> Ran:
    """A voice of several speakers, whose gates hear two of them."""
    done = workplace.run(f"{ONE_WINDOW_COMMAND} CHECKPOINT={CHOIR} SPEAKER=1")
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="session")
def durations(workplace: Workplace) -> Ran:
    """The default voice's duration encoder."""
    done = workplace.run(DURATIONS_COMMAND)
    assert done.code == 0, done.output
    return done
