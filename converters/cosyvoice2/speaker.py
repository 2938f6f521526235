"""The stage `cosyvoice2 speaker`: features of speech to the embedding of who speaks, by length. No torch.

What the host hands over are 80 log mel energies of 16 kHz speech a frame, as Kaldi computes them (`fbank`: frames of
25 ms, 10 ms apart, no dither), fitted to the engine's length and then less their mean over time
(`rknn_tts_runtime.speaker_window`). There is no padding inside: the encoder takes means over all frames.
"""

from __future__ import annotations

from functools import cache

from converters.cosyvoice2.speaker_lengths import roles
from converters.cosyvoice_files import CAMPPLUS, locator
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageExport, StageOptions
from models.cosyvoice2.speaker_config import TRUE_CONFIG
from models.cosyvoice2.speaker_stand_in import RECIPE

WEIGHTS_NAMES = ("campplus.pt", "campplus_cn_common.bin")
"""The module's weights as torch writes them; the latter is 3D-Speaker's name of what the ONNX was exported from."""

TORCH = frozenset({"torch"})


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    from converters.cosyvoice2.speaker_export import speaker_export
    from converters.cosyvoice2.speaker_opening import SpeakerOpening

    opening = SpeakerOpening(checkpoint, open_session)

    def export(role: str) -> StageExport:
        return speaker_export(opening, role)

    return cache(export)


STAGE = Stage(
    family="cosyvoice2",
    name="speaker",
    summary="CAM++ speaker encoder of CosyVoice: 200 and 400 frames of features to an embedding of 192",
    default_checkpoint=None,
    options=frozenset({"lengths"}),
    open=_open,
    extras=TORCH,
    roles=roles,
    locate=locator("cosyvoice2", "speaker", (CAMPPLUS, *WEIGHTS_NAMES), f"{RECIPE}, {TRUE_CONFIG}", TORCH),
    checkpoints=f"FOLDER, {CAMPPLUS}, {' or '.join(WEIGHTS_NAMES)}, hf://OWNER/REPO or random",
)
