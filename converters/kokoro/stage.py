"""The stage `kokoro generator`: latent frames, harmonics and style to a spectrogram, at one fixed window. No torch."""

from __future__ import annotations

from pathlib import Path

from converters.kokoro.geometry import roles
from converters.kokoro.package import KOKORO, VOICES
from converters.stages import Checkpoint, Opened, OpenSession, SavedCheckpoint, Stage, StageOptions


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    from converters.kokoro.generator import open_generator

    return open_generator(checkpoint, options, open_session)


def _save(checkpoint: Checkpoint, options: StageOptions, place: Path) -> SavedCheckpoint:
    from converters.kokoro.saving import saved_checkpoint

    return saved_checkpoint(checkpoint, options, place)


STAGE = Stage(
    family="kokoro",
    name="generator",
    summary="iSTFTNet generator of Kokoro-82M: latent frames to a spectrogram (window 128 = 9 + 110 + 9)",
    default_checkpoint=KOKORO,
    options=frozenset({"window", "context", "config", "member", "norm", "sine", "max_axis", "padding"}),
    open=_open,
    extras=frozenset({"torch"}),
    roles=roles,
    material=VOICES,
    beside=("config.json",),
    speaks=True,
    save=_save,
)
