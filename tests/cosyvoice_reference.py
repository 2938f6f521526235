"""The originals of CosyVoice's networks, to compare ours with: single modules of installed packages.

| Ours | Original | Package |
|---|---|---|
| CosyVoice2's flow encoder | `cosyvoice.transformer.upsample_encoder` | cosyvoice2-eu |
| CosyVoice2's flow estimator | `cosyvoice.flow.decoder` (with diffusers' attention) | cosyvoice2-eu |
| HiFT, F0 | `cosyvoice.hifigan.generator`, `cosyvoice.hifigan.f0_predictor` | cosyvoice2-eu |
| CAMPPlus | `funasr.models.campplus.model` | funasr |
| CosyVoice3's flow estimator | `f5_tts.model.modules`, `x_transformers.x_transformers` | f5-tts |

No package's `__init__` is run: they need hundreds of megabytes more. What a module imports and does not calculate with
is stood in for; what it calculates with is the original's, but for SciPy's Hann window.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

ORIGINALS = ("cosyvoice", "matcha", "diffusers", "funasr", "f5_tts", "x_transformers")
"""Packages of which single modules are loaded."""

# Folders of those packages whose `__init__` is not to run either.
_FOLDERS = ("diffusers.models", "diffusers.utils", "matcha.utils", "f5_tts.model", "funasr.models", "funasr.utils")

_loaded: dict[str, ModuleType] = {}


def cosyvoice_module(name: str) -> ModuleType:
    """The module of that whole name, one of those of the table above or what they import.

    It is the same module each time. `sys.modules` is left without it and without the stand-ins, so that nobody else
    finds them.

    Raises:
        ModuleNotFoundError: the package is not installed; `make setup-dev` does that.
    """
    with _standing_in():
        return importlib.import_module(name)


@contextmanager
def _standing_in() -> Iterator[None]:
    import einops  # noqa: F401  (they all use it, and it stays)

    there = {name: module for name, module in sys.modules.items() if _is_ours(name)}
    stand_ins = _stand_ins()
    hidden = {name: sys.modules[name] for name in stand_ins if name in sys.modules}
    _replace(there, {**stand_ins, **_loaded})
    try:
        yield
    finally:
        _loaded.update({name: module for name, module in sys.modules.items() if _is_ours(name)})
        _replace({**stand_ins, **_loaded}, {**hidden, **there})


def _replace(old: dict[str, ModuleType], new: dict[str, ModuleType]) -> None:
    for name in old:
        sys.modules.pop(name, None)
    sys.modules.update(new)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in ORIGINALS


def _stand_ins() -> dict[str, ModuleType]:
    modules = [_package(name, name) for name in ORIGINALS]
    modules += [_package(name, name.partition(".")[0]) for name in _FOLDERS]
    modules += [_module(name, **names) for name, names in _UNUSED.items()]
    modules.append(_module("scipy.signal", get_window=_hann_window))
    modules.append(_module("distutils.version", LooseVersion=_version))
    by_name = {module.__name__: module for module in modules}
    vars(by_name["diffusers.utils"]).update(deprecate=_nothing, logging=_Logging, is_torch_version=_nothing)
    return by_name


def _package(name: str, distribution: str) -> ModuleType:
    """The package without what its `__init__` does: only where its modules are."""
    spec = importlib.util.find_spec(distribution)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"The reference package {distribution} is not installed: run `make setup-dev`.")
    inside = name.split(".")[1:]
    return _module(name, __path__=["/".join([place, *inside]) for place in spec.submodule_search_locations])


def _module(name: str, **names: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(names)
    return module


def _nothing(*_: object, **__: object) -> bool:
    return False


def _as_it_is(value: Any) -> Any:
    return value


def _version(text: str) -> Any:
    from packaging.version import Version

    return Version(text)


def _hann_window(name: str, length: int, fftbins: bool) -> Any:
    """SciPy's periodic Hann window, in float64 as there."""
    import torch

    if name != "hann" or not fftbins:
        raise ValueError("only the periodic Hann window is stood in for")
    return torch.hann_window(length, periodic=True, dtype=torch.float64).numpy()


class _Logging:
    """What modules of diffusers do with its logging while they are imported, and as LoRA's layers are made."""

    @staticmethod
    def get_logger(_: str) -> type[_Logging]:
        return _Logging


class _Tables:
    @staticmethod
    def register(*_: str) -> Callable[[Any], Any]:
        return _as_it_is


# What is imported by name and takes no part in what is compared.
_UNUSED: dict[str, dict[str, object]] = {
    "conformer": {"ConformerBlock": object},
    "cosyvoice.cli.model": {"CosyVoiceModel": object, "CosyVoice2Model": object},
    "cosyvoice.flow.flow": {"MaskedDiffWithXvec": object, "CausalMaskedDiffWithXvec": object},
    "cosyvoice.llm.llm": {"TransformerLM": object, "Qwen2LM": object},
    "diffusers.image_processor": {"IPAdapterMaskProcessor": object},
    "diffusers.utils.import_utils": {
        "is_torch_npu_available": _nothing,
        "is_transformers_available": _nothing,
        "is_xformers_available": _nothing,
    },
    "diffusers.utils.torch_utils": {"maybe_allow_in_graph": _as_it_is},
    "einx": {},
    "funasr.models.campplus.utils": {"extract_feature": _nothing},
    "funasr.register": {"tables": _Tables},
    "funasr.utils.load_utils": {"load_audio_text_image_video": _nothing},
    "librosa.filters": {"mel": _nothing},
    "loguru": {"logger": object},
    "torchaudio": {},
}
