"""The stage `inflect decoder`: latent and mask to samples, at fixed windows. No torch."""

from __future__ import annotations

from converters.inflect.checkpoint import RANDOM_NANO, is_slice, locate
from converters.inflect.decoder import open_decoder
from converters.inflect.probe import probe_of
from converters.stages import Checkpoint, Stage, StageOptions
from converters.vits_ladder import roles_of, with_default_windows


def _settled(options: StageOptions, target: str | None, checkpoint: Checkpoint) -> StageOptions:
    """A slice has one window, and that of its own."""
    return options if is_slice(checkpoint) else with_default_windows("inflect.decoder", options, target)


STAGE = Stage(
    family="inflect",
    name="decoder",
    summary="VITS decoder of Inflect v2, Micro and Nano: latent frames to samples, a ladder of windows",
    default_checkpoint=None,
    options=frozenset({"window", "windows", "context", "no_decoder_mask"}),
    open=open_decoder,
    roles=roles_of,
    settled=_settled,
    locate=locate,
    speaks=True,
    reads=True,
    probe=probe_of,
    checkpoints=f"FOLDER, SLICE.onnx, random or {RANDOM_NANO}",
)
