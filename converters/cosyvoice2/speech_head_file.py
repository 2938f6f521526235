"""CosyVoice's `llm.pt`, of which the speech head is read and, of the language model, the gain of its last norm alone.

llm_decoder.weight          [logits, hidden]
llm_decoder.bias            [logits]; CosyVoice3's head has none
llm.model.model.norm.weight [hidden]: what hidden states are multiplied by before the head sees them
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.cosyvoice_files import LLM
from converters.torch_weights import check_weights, read_weights

WEIGHT, BIAS, GAIN = "llm_decoder.weight", "llm_decoder.bias", "llm.model.model.norm.weight"

WHOSE = "CosyVoice2's speech head"
ADVICE = f"give CosyVoice2-0.5B's or Fun-CosyVoice3-0.5B's {LLM}, or its folder"


@dataclass(frozen=True)
class SpeechHead:
    """A linear layer from the language model's last hidden state to logits of speech tokens.

    Attributes:
        weight: [logits, hidden].
        bias: [logits]; None where there is none.
        gain: [hidden], of the norm ahead; None where the file has none.
    """

    weight: NDArray[np.float32]
    bias: NDArray[np.float32] | None
    gain: NDArray[np.float32] | None


def read_head(path: Path) -> SpeechHead:
    """The head in the file `path`, of which no more is read than that.

    Raises:
        UserInput: the file is missing, damaged, or no torch file.
        Refusal: it has no head, one of other sizes than its parts say, or NaN in it.
    """
    found = read_weights(path, WHOSE, ADVICE, (WEIGHT, BIAS, GAIN), mapped=True)
    weight = found.get(WEIGHT)
    if weight is None or weight.ndim != 2 or not weight.size:
        told = "it has none" if weight is None else f"that is {list(weight.shape)}"
        raise Refusal(
            f"{path}: is no {LLM} of CosyVoice2: {WEIGHT} [logits, hidden] is its speech head, and {told}; {ADVICE}."
        )
    logits, hidden = weight.shape
    shapes = {WEIGHT: (logits, hidden), BIAS: (logits,), GAIN: (hidden,)}
    check_weights(found, {name: shape for name, shape in shapes.items() if name in found}, path, WHOSE, ADVICE)
    return SpeechHead(weight, found.get(BIAS), found.get(GAIN))
