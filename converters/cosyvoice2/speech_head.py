"""The stage `cosyvoice2 speech_head`: the language model's last hidden state to logits of speech tokens.

The language model itself is RKLLM's, which gives its last hidden layer, behind the norm, and takes embeddings. torch
only where a checkpoint is read.
"""

from __future__ import annotations

import dataclasses

from contracts.contract import RANDOM
from contracts.quantisation import W8A8
from contracts.seed import SEED
from converters.cosyvoice2.speech_head_export import head_export, precision_of
from converters.cosyvoice2.speech_head_file import read_head
from converters.cosyvoice2.speech_head_stand_in import HIDDEN, LOGITS, RECIPE, stand_in
from converters.cosyvoice_files import LLM, locator
from converters.stages import Checkpoint, FetchHub, Opened, OpenSession, Stage, StageOptions, of_one

PRECISION = precision_of(W8A8)

_LOCATE = locator("cosyvoice2", "speech_head", (LLM,), f"{RECIPE}, {HIDDEN} to {LOGITS}", frozenset({"torch"}))


def _locate(text: str, fetch_hub: FetchHub) -> Checkpoint:
    found = _LOCATE(text, fetch_hub)
    return dataclasses.replace(found, extras=frozenset()) if found.source.kind == RANDOM else found


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    head = stand_in(SEED) if checkpoint.source.kind == RANDOM else read_head(checkpoint.path)
    precision = options.precision or PRECISION.default
    return of_one(head_export(head, checkpoint.source, checkpoint.note, options, precision, open_session))


STAGE = Stage(
    family="cosyvoice2",
    name="speech_head",
    summary="the language model's last hidden state to logits of speech tokens, in 8 bits (W8A8)",
    default_checkpoint=None,
    options=frozenset({"precision", "calibration"}),
    open=_open,
    locate=_locate,
    checkpoints=f"FOLDER, {LLM}, hf://OWNER/REPO or random",
    precision=PRECISION,
)
