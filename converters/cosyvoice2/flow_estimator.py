"""The stage `cosyvoice2 flow_estimator`: the velocity of mel frames on their way from noise, step by step or at once.
No torch."""

from __future__ import annotations

from functools import cache

from converters.cosyvoice2.flow_estimator_geometry import roles
from converters.cosyvoice_files import ESTIMATOR, FLOW, locator
from converters.precision import FLOW_LOSES, Precision
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageExport, StageOptions
from models.cosyvoice2.estimator_config import TRUE_CONFIG
from models.cosyvoice2.estimator_stand_in import RECIPE

TORCH = frozenset({"torch"})


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    from converters.cosyvoice2.flow_estimator_export import estimator_export
    from converters.cosyvoice2.flow_estimator_opening import EstimatorOpening

    opening = EstimatorOpening(checkpoint, options, open_session)

    def export(role: str) -> StageExport:
        return estimator_export(opening, role)

    return cache(export)


STAGE = Stage(
    family="cosyvoice2",
    name="flow_estimator",
    summary="flow estimator of CosyVoice2: a streaming step of 32 mel frames, or fixed numbers of frames",
    default_checkpoint=None,
    options=frozenset({"chunk", "history", "lengths", "member", "precision", "calibration", "allow_quantized"}),
    open=_open,
    extras=TORCH,
    roles=roles,
    locate=locator("cosyvoice2", "flow_estimator", (FLOW, ESTIMATOR), f"{RECIPE}, {TRUE_CONFIG}", TORCH),
    checkpoints=f"FOLDER, {FLOW}, {ESTIMATOR}, hf://OWNER/REPO or random",
    precision=Precision(loses=FLOW_LOSES),
)
