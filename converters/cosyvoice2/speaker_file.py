"""The speaker encoder's checkpoint, read: a published ONNX, the module's weights, or random ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.contract import RANDOM
from contracts.errors import Refusal
from contracts.seed import SEED
from converters.cosyvoice_files import CAMPPLUS
from converters.onnx_file import load_external, read_onnx
from converters.stages import Checkpoint
from converters.torch_weights import check_weights, read_weights
from models.cosyvoice2.speaker_config import FREQUENCY_STEPS, TRUE_CONFIG, SpeakerConfig, config_of, layout
from models.cosyvoice2.speaker_weights import folded
from surgery.normalise_initializers import normalise_initializers

WHOSE = "CosyVoice's speaker encoder (CAM++)"
ADVICE = f"give CosyVoice2-0.5B's {CAMPPLUS}, or its folder"


@dataclass(frozen=True)
class OpenSpeaker:
    """An encoder's weights.

    Attributes:
        config: their sizes.
        weights: `models.cosyvoice2.speaker_weights.folded`.
        published: the ONNX that they come from; None where they are a checkpoint of the module, or random.
    """

    config: SpeakerConfig
    weights: Mapping[str, NDArray[np.float32]]
    published: ir.Model | None


def open_speaker(checkpoint: Checkpoint) -> OpenSpeaker:
    """The encoder of a located checkpoint.

    Raises:
        UserInput: the file is missing, damaged, or another format.
        Refusal: it is no encoder of this kind, or holds NaN.
    """
    if checkpoint.source.kind == RANDOM:
        from models.cosyvoice2.speaker_stand_in import stand_in

        return OpenSpeaker(TRUE_CONFIG, folded(stand_in(TRUE_CONFIG, SEED), TRUE_CONFIG), None)
    return _open_onnx(checkpoint) if checkpoint.path.suffix == ".onnx" else _open_weights(checkpoint)


def _open_onnx(checkpoint: Checkpoint) -> OpenSpeaker:
    from converters.cosyvoice2.speaker_onnx import onnx_weights

    path = checkpoint.path
    model = normalise_initializers().rewrite(read_onnx(path)).model
    load_external(model)
    config, weights = onnx_weights(model, path)
    _check_interface(model, config, str(path))
    return OpenSpeaker(config, weights, model)


def _open_weights(checkpoint: Checkpoint) -> OpenSpeaker:
    path = checkpoint.path
    weights = read_weights(path, WHOSE, ADVICE, ("head.", "xvector."), ignored=(".num_batches_tracked",))
    config = config_of({name: array.shape for name, array in weights.items()})
    if config is None:
        raise Refusal(f"{path}: is not {WHOSE}: its tensors tell no such sizes; {ADVICE}.")
    check_weights(weights, layout(config), path, WHOSE, ADVICE)
    try:
        return OpenSpeaker(config, folded(weights, config), None)
    except ValueError as error:
        raise Refusal(f"{path}: {error}, and a variance is not negative; get the checkpoint again.") from error


def _check_interface(model: ir.Model, config: SpeakerConfig, where: str) -> None:
    """One input [B, T, features] of floats, and one output."""
    inputs, outputs = model.graph.inputs, model.graph.outputs
    shape = inputs[0].shape if len(inputs) == 1 else None
    taken = None if shape is None else [size if isinstance(size, int) else None for size in shape]
    fits = taken is not None and len(taken) == 3 and taken[2] in (None, config.features) and taken[0] in (None, 1)
    if not fits or len(outputs) != 1 or config.features % FREQUENCY_STEPS:
        raise Refusal(
            f"{where}: is not {WHOSE}: that takes one input [1, T, {config.features}] and gives one output; {ADVICE}."
        )
