"""The stage `inflect decoder`: latent and mask to samples, at one fixed window. No torch."""

from __future__ import annotations

from converters.inflect.checkpoint import RANDOM_NANO, locate
from converters.inflect.decoder import open_decoder
from converters.inflect.probe import probe_of
from converters.stages import Stage
from converters.vits_ladder import roles_of

STAGE = Stage(
    family="inflect",
    name="decoder",
    summary="VITS decoder of Inflect v2, Micro and Nano: latent frames to samples (window 256 = 32 + 192 + 32)",
    default_checkpoint=None,
    options=frozenset({"window", "windows", "context", "no_decoder_mask"}),
    open=open_decoder,
    roles=roles_of,
    locate=locate,
    speaks=True,
    reads=True,
    probe=probe_of,
    checkpoints=f"FOLDER, SLICE.onnx, random or {RANDOM_NANO}",
)
