"""The stage `cosyvoice3 flow`: the flow's estimator for a guidance pair, one engine a length. No torch."""

from __future__ import annotations

from converters.cosyvoice3.geometry import roles
from converters.cosyvoice_files import ESTIMATOR, FLOW, locator
from converters.precision import FLOW_LOSES, Precision
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageOptions
from models.cosyvoice3.config import TRUE_CONFIG
from models.cosyvoice3.stand_in import RECIPE

TORCH = frozenset({"torch"})


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    from converters.cosyvoice3.engine import flow_export
    from converters.cosyvoice3.opening import FlowOpening

    opening = FlowOpening(checkpoint, options, open_session)
    return lambda role: flow_export(opening, role)


STAGE = Stage(
    family="cosyvoice3",
    name="flow",
    summary="flow estimator of CosyVoice3 (DiT) for a guidance pair, one engine a length in mel frames (110 to 400)",
    default_checkpoint=None,
    options=frozenset({"lengths", "precision", "calibration", "allow_quantized"}),
    open=_open,
    extras=TORCH,
    roles=roles,
    locate=locator("cosyvoice3", "flow", (FLOW, ESTIMATOR), f"{RECIPE}, {TRUE_CONFIG}", TORCH),
    checkpoints=f"FOLDER, {FLOW}, {ESTIMATOR}, hf://OWNER/REPO or random",
    precision=Precision(loses=FLOW_LOSES),
)
