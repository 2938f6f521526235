"""The original Kokoro, to compare ours with: single modules of the installed package `kokoro`.

`kokoro/__init__.py` is never run: it needs transformers, misaki and more, and the modules of the network do not.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from unittest.mock import patch

_loaded: dict[str, ModuleType] = {}


def kokoro_module(name: str) -> ModuleType:
    """The module `kokoro.NAME`: "istftnet" (the decoder), "custom_stft", "modules" (text encoder and prosody).

    Raises:
        ModuleNotFoundError: the package is not installed; `make setup-dev` does that.
    """
    # sys.modules is as it was afterwards: nobody else must find these stand-ins.
    with patch.dict(sys.modules, {"kokoro": _package(), "transformers": _transformers(), **_loaded}):
        module = importlib.import_module(f"kokoro.{name}")
        _loaded.update({key: value for key, value in sys.modules.items() if key.startswith("kokoro.")})
    return module


def _package() -> ModuleType:
    """The package without what its `__init__` does: only where its modules are."""
    spec = importlib.util.find_spec("kokoro")
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError("The reference package kokoro is not installed: run `make setup-dev`.")
    package = ModuleType("kokoro")
    package.__path__ = list(spec.submodule_search_locations)
    return package


def _transformers() -> ModuleType:
    """What `kokoro.modules` takes of transformers: the base of a class (the text's BERT) that is not compared."""
    stand_in = ModuleType("transformers")
    vars(stand_in)["AlbertModel"] = object
    return stand_in
