"""The original of Qwen3's speech decoder, to compare ours with: two modules of the installed package `qwen_tts`.

`qwen_tts/__init__.py` and `qwen_tts/core/__init__.py` are never run: they need librosa, torchaudio, gradio and more.
The two modules need transformers, whose import takes seconds: it happens when a decoder is first asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from models.qwen3.config import DecoderConfig

if TYPE_CHECKING:
    from torch import nn

PACKAGE = "qwen3_original"
"""The name that the two modules are imported under. It stays in `sys.modules`: transformers looks classes up there."""


def reference_decoder(config: DecoderConfig) -> nn.Module:
    """The original's decoder, to call with codes [1, num_quantizers, N] (integers) for audio [1, 1, 1920 N] in -1..1.

    Its weights are what the original makes of the same seed each time (codebooks and SnakeBeta's exponents all zero),
    to be replaced with `load_state_dict`; the names are a checkpoint's behind `decoder.`. It is in evaluation mode, and
    no parameter asks for gradients. The state of torch's random numbers is left as it was.

    Raises:
        ModuleNotFoundError: the package, or transformers, is not installed; `make setup-dev` does that.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        decoder = _module("modeling").Qwen3TTSTokenizerV2Decoder._from_config(_original_config(config))
    assert isinstance(decoder, torch.nn.Module)
    return decoder.eval().requires_grad_(False)


def _original_config(config: DecoderConfig) -> object:
    sizes = asdict(config)
    if sizes.pop("n_q_semantic") != 1:
        raise ValueError("the original has one semantic codebook, written out in its code")
    # "eager" is the attention that the original writes out itself; others are torch's or a kernel's.
    return _module("configuration").Qwen3TTSTokenizerV2DecoderConfig(**sizes, attn_implementation="eager")


@lru_cache
def _module(kind: str) -> ModuleType:
    """The module "modeling" or "configuration" of the tokenizer of 12.5 Hz."""
    if PACKAGE not in sys.modules:
        package = ModuleType(PACKAGE)
        package.__path__ = [str(_folder())]
        sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.{kind}_qwen3_tts_tokenizer_v2")


def _folder() -> Path:
    spec = importlib.util.find_spec("qwen_tts")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("The reference package qwen_tts is not installed: run `make setup-dev`.")
    return Path(spec.submodule_search_locations[0]) / "core" / "tokenizer_12hz"
