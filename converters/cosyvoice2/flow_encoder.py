"""The stage `cosyvoice2 flow_encoder`: speech tokens' embeddings to the mel frames' mean, step by step. No torch."""

from __future__ import annotations

from functools import cache

from converters.cosyvoice2.flow_encoder_geometry import roles
from converters.cosyvoice_files import FLOW, locator
from converters.precision import FLOW_LOSES, Precision
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageExport, StageOptions
from models.cosyvoice2.encoder_config import TRUE_CONFIG
from models.cosyvoice2.encoder_stand_in import RECIPE

TORCH = frozenset({"torch"})


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    from converters.cosyvoice2.flow_encoder_export import encoder_export
    from converters.cosyvoice2.flow_encoder_opening import EncoderOpening

    opening = EncoderOpening(checkpoint, options, open_session)

    def export(role: str) -> StageExport:
        return encoder_export(opening, role)

    return cache(export)


STAGE = Stage(
    family="cosyvoice2",
    name="flow_encoder",
    summary="flow encoder of CosyVoice2: streaming steps of 16 speech tokens to 32 mel frames, 3 tokens ahead, or 1",
    default_checkpoint=None,
    options=frozenset({"chunk", "look_ahead", "history", "member", "precision", "calibration", "allow_quantized"}),
    open=_open,
    extras=TORCH,
    roles=roles,
    locate=locator("cosyvoice2", "flow_encoder", (FLOW,), f"{RECIPE}, {TRUE_CONFIG}", TORCH),
    checkpoints=f"FOLDER, {FLOW}, hf://OWNER/REPO or random",
    precision=Precision(loses=FLOW_LOSES),
)
