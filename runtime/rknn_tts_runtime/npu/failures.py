"""What the codes of the RKNN API mean, and what to do about them.

Codes and names are the public header's (`rknn_api.h` 2.x). What they come of is from the reference ("The IOVA ceiling",
"Who refused") and from public reports: a library that is older than an engine's format refuses it with -1 (1.4) or -6
(1.5), and so -6 is not always the driver.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Sequence

from rknn_tts_runtime.aperture_budget import BUDGET_BYTES, as_mib
from rknn_tts_runtime.faults import RunFault
from rknn_tts_runtime.npu import api

DRIVER_LOG = "dmesg | grep -i rknpu"
"""Where the driver tells what it refused (reference, "Requirements")."""


class Versions(NamedTuple):
    """Of the library and of the kernel driver, as far as known."""

    api: str | None = None
    driver: str | None = None


class Meaning(NamedTuple):
    """A code's name in the header, what it says, and what to do; empty where that depends on the call."""

    name: str
    says: str
    remedy: str = ""


MEANINGS = {
    api.CODE_FAIL: Meaning("RKNN_ERR_FAIL", "it failed", f"see `{DRIVER_LOG}`"),
    api.CODE_TIMEOUT: Meaning(
        "RKNN_ERR_TIMEOUT", "the NPU did not finish in time", f"see `{DRIVER_LOG}`, and whether others use the NPU"
    ),
    api.CODE_DEVICE_UNAVAILABLE: Meaning(
        "RKNN_ERR_DEVICE_UNAVAILABLE",
        "there is no NPU to be had",
        f"check that the driver is loaded (`{DRIVER_LOG}`) and that this user may open its device",
    ),
    api.CODE_MALLOC_FAIL: Meaning(
        "RKNN_ERR_MALLOC_FAIL",
        "the driver gave no memory",
        f"close other engines; `{DRIVER_LOG}` tells what it refused",
    ),
    api.CODE_PARAM_INVALID: Meaning(
        "RKNN_ERR_PARAM_INVALID",
        "it does not take what it was given",
        "install librknnrt.so of the toolkit that compiled the engine",
    ),
    api.CODE_MODEL_INVALID: Meaning("RKNN_ERR_MODEL_INVALID", "the engine was refused", f"see `{DRIVER_LOG}`"),
    api.CODE_CTX_INVALID: Meaning(
        "RKNN_ERR_CTX_INVALID", "there is no such context", "report it: rknn-tts is at fault"
    ),
    api.CODE_INPUT_INVALID: Meaning(
        "RKNN_ERR_INPUT_INVALID", "it does not take these inputs", "compile the engine again, or report it"
    ),
    api.CODE_OUTPUT_INVALID: Meaning(
        "RKNN_ERR_OUTPUT_INVALID", "it does not give these outputs", "compile the engine again, or report it"
    ),
    api.CODE_DEVICE_UNMATCH: Meaning(
        "RKNN_ERR_DEVICE_UNMATCH", "library and driver do not fit", "update librknnrt.so and the NPU's driver together"
    ),
    api.CODE_INCOMPATIBLE_PRE_COMPILE: Meaning(
        "RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL",
        "the engine was compiled for another driver",
        "update librknnrt.so and the NPU's driver together",
    ),
    api.CODE_INCOMPATIBLE_OPTIMIZATION: Meaning(
        "RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION",
        "the engine's optimization level does not fit the driver",
        "update librknnrt.so and the NPU's driver together",
    ),
    api.CODE_TARGET_PLATFORM_UNMATCH: Meaning(
        "RKNN_ERR_TARGET_PLATFORM_UNMATCH", "the engine is for another chip", "compile it for this board's"
    ),
}
"""By code; the two names with INCOMPATILE are spelt so in the header."""

NO_ROOM_CODES = (api.CODE_MALLOC_FAIL, api.CODE_MODEL_INVALID)
"""What `rknn_init` returned where addresses ran out (reference)."""

_REFUSED_BY_AGE = (
    api.CODE_FAIL,
    api.CODE_PARAM_INVALID,
    api.CODE_MODEL_INVALID,
    api.CODE_DEVICE_UNMATCH,
    api.CODE_INCOMPATIBLE_PRE_COMPILE,
    api.CODE_INCOMPATIBLE_OPTIMIZATION,
)
"""What `rknn_init` may return where the library is older than the engine; the others have causes of their own."""

_VERSION_NUMBERS = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")


@dataclass(frozen=True)
class Loaded:
    """What is known when an engine cannot be loaded.

    Attributes:
        engine: its file.
        target: the chip it was compiled for.
        toolkit: version of the toolkit that compiled it.
        context_bytes: what it takes of the address space; None where that is not known.
        rebuild: the command that compiles it for another chip.
        file_fault: what is wrong with its file, as a sentence; None where it is the manifest's.
        soc: the board's chip; None where the system does not tell.
        others: engines of this process that are loaded, and what each takes, in bytes.
    """

    engine: Path
    target: str
    toolkit: str
    context_bytes: int | None
    rebuild: str
    file_fault: str | None
    soc: str | None
    others: Sequence[tuple[str, int]] = ()


def call_failure(subject: object, call: str, code: int, versions: Versions) -> RunFault:
    """The fault of a `call` of the API about `subject` (an engine's file) that returned `code`."""
    meaning = MEANINGS.get(code)
    remedy = f" What to do: {meaning.remedy}." if meaning else ""
    return RunFault(f"{_what_failed(subject, call, code)}.{remedy}{told_versions(versions)}", code)


def load_failure(known: Loaded, code: int, versions: Versions) -> RunFault:
    """The fault of an engine that `rknn_init` refused with `code`: of its file, its chip, versions, or addresses."""
    cause = (
        known.file_fault
        or _other_chip(known, code)
        or _old_library(known, code, versions)
        or (_full_address_space(known) + _perhaps_old(known, code, versions) if code in NO_ROOM_CODES else "")
    )
    if not cause and code in MEANINGS:
        cause = f"What to do: {MEANINGS[code].remedy}."
    sentence = f"{_what_failed(known.engine, 'rknn_init', code)}. {cause}".rstrip()
    return RunFault(f"{sentence}{told_versions(versions)}", code)


def told_versions(versions: Versions) -> str:
    """The versions as an error carries them, in brackets after a space; empty where none is known."""
    parts = [f"{name} {version}" for name, version in (("driver", versions.driver), ("api", versions.api)) if version]
    return f" ({', '.join(parts)})" if parts else ""


def is_older(version: str, than: str) -> bool:
    """Whether `version` ("2.3.0 (c949ad889d@...)") is older than `than` ("2.3.2"); False where one has no numbers."""
    first, second = _VERSION_NUMBERS.match(version), _VERSION_NUMBERS.match(than)
    if first is None or second is None:
        return False
    return [int(part or 0) for part in first.groups()] < [int(part or 0) for part in second.groups()]


def _what_failed(subject: object, call: str, code: int) -> str:
    meaning = MEANINGS.get(code)
    return f"{subject}: {call} failed with code {code}" + (f" ({meaning.name}: {meaning.says})" if meaning else "")


def _other_chip(known: Loaded, code: int) -> str:
    if code != api.CODE_TARGET_PLATFORM_UNMATCH:
        return ""
    board = f"this board says that it has an {known.soc}" if known.soc else "this board does not say which chip it has"
    return f"It was compiled for {known.target}, and {board}. To build it for another: {known.rebuild}."


def _old_library(known: Loaded, code: int, versions: Versions) -> str:
    if code not in _REFUSED_BY_AGE or not versions.api or not is_older(versions.api, known.toolkit):
        return ""
    return (
        f"The file is whole, but this librknnrt is {versions.api.split()[0]}, older than the {known.toolkit} of the "
        f"toolkit that compiled it: install librknnrt.so {known.toolkit}."
    )


def _perhaps_old(known: Loaded, code: int, versions: Versions) -> str:
    if code not in _REFUSED_BY_AGE or versions.api:
        return ""
    return f" Or this librknnrt, which does not tell its version, is older than {known.toolkit}."


def _full_address_space(known: Loaded) -> str:
    own = f"this one takes {as_mib(known.context_bytes)}" if known.context_bytes else "what this one takes is not known"
    if known.others:
        total = sum(size for _, size in known.others)
        listed = ", ".join(f"{name} {as_mib(size)}" for name, size in known.others)
        loaded = f"Loaded are {listed}, together {as_mib(total)}"
    else:
        loaded = "No other engine of this process is loaded"
    return (
        "The file is whole, so the driver refused it: the engines of a process share one address space, of which about "
        f"{as_mib(BUDGET_BYTES)} can be had on RK3588. {loaded}; {own}. Close engines or use narrower ones; "
        f"`{DRIVER_LOG}` tells how many bytes were refused."
    )
