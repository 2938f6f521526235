"""The stage `cosyvoice2 f0`: mel frames to pitches, at the vocoder's fixed windows. No torch."""

from __future__ import annotations

from functools import cache

from converters.cosyvoice2.hift_geometry import roles
from converters.cosyvoice_files import HIFT, locator
from converters.precision import HIFT_LOSES, Precision
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageExport, StageOptions
from models.cosyvoice2.hift_config import TRUE_CONFIG
from models.cosyvoice2.hift_stand_in import RECIPE

TORCH = frozenset({"torch"})


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    from converters.cosyvoice2.f0_export import f0_export
    from converters.cosyvoice2.hift_opening import HiftOpening

    opening = HiftOpening(checkpoint, options, open_session)

    def export(role: str) -> StageExport:
        return f0_export(opening, role)

    return cache(export)


STAGE = Stage(
    family="cosyvoice2",
    name="f0",
    summary="predictor of pitch of CosyVoice2's HiFT vocoder, at its windows",
    default_checkpoint=None,
    options=frozenset({"buckets", "precision", "calibration", "allow_quantized"}),
    open=_open,
    extras=TORCH,
    roles=roles,
    locate=locator("cosyvoice2", "f0", (HIFT,), f"{RECIPE}, {TRUE_CONFIG}", TORCH),
    checkpoints=f"FOLDER, {HIFT}, hf://OWNER/REPO or random",
    precision=Precision(loses=HIFT_LOSES),
)
