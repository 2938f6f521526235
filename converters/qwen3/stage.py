"""The stage `qwen3 speech_decoder`: codes and a cache to samples and the next cache, one streaming step. No torch."""

from __future__ import annotations

import onnx_ir as ir

from contracts.contract import Cache, CodeStep
from converters.qwen3.checkpoint import locate
from converters.qwen3.geometry import roles
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageOptions, Streamed


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    from converters.qwen3.opening import Opening
    from converters.qwen3.step_engine import step_export

    opening = Opening(checkpoint, options, open_session)
    return lambda role: step_export(opening, role)


def _stream(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Streamed:
    from converters.qwen3.opening import Opening

    opening = Opening(checkpoint, options, open_session)
    geometry = opening.geometry
    return Streamed(
        stems={size.codes: geometry.stem(role) for role, size in geometry.steps.items()},
        run=opening.run,
        latent=opening.drawn,
        cache_numel=opening.layout.numel,
        samples_per_code=opening.config.samples_per_code,
        sample_rate=opening.sample_rate,
        notes=(checkpoint.note,) if checkpoint.note else (),
    )


def _recognised(model: ir.Model) -> tuple[CodeStep, Cache] | None:
    from converters.qwen3.step_reader import recognised

    return recognised(model)


STAGE = Stage(
    family="qwen3",
    name="speech_decoder",
    summary="speech decoder of Qwen3-TTS (12 Hz) as a stateful streaming step of 64 codes, and one of 16 to begin with",
    default_checkpoint=None,
    options=frozenset({"codes", "seam", "cache", "window_role", "sine", "member"}),
    open=_open,
    extras=frozenset({"torch"}),
    roles=roles,
    locate=locate,
    checkpoints="SNAPSHOT, hf://OWNER/REPO or random",
    recognised=_recognised,
    stream=_stream,
)
