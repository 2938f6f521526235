"""The end of a command whose gates failed: the verdicts are kept, and nothing is put in the engine's place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from contracts.errors import GateFailure
from contracts.files import write_whole
from contracts.serial import to_json
from contracts.verdicts import Verdict, failed

FAILED_SCHEMA = "rknn-tts/failed/1"


def stop_if_failed(verdicts: Sequence[Verdict], kept_in: Path, log: Path | None, consequence: str) -> None:
    """Do nothing where no verdict failed.

    Raises:
        GateFailure: one did; all verdicts are kept in `kept_in` first.
    """
    bad = failed(verdicts)
    if not bad:
        return
    names = ", ".join(dict.fromkeys(verdict.gate for verdict in bad))
    first = bad[0].detail.rstrip(".")
    sentence = f"{consequence}: {'a gate' if len(bad) == 1 else f'{len(bad)} gates'} failed ({names}): {first}."
    raise GateFailure(sentence + keep_verdicts(verdicts, kept_in, log), verdicts, log)


def keep_verdicts(verdicts: Sequence[Verdict], kept_in: Path, log: Path | None) -> str:
    """Write all `verdicts` to the file `kept_in`; a sentence that says where, or why not."""
    data = {"schema": FAILED_SCHEMA, "verdicts": to_json(tuple(verdicts)), "log": str(log) if log else None}
    try:
        kept_in.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        # A path may hold bytes that are no UTF-8, which JSON has an escape for.
        write_whole(kept_in, text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        return f" The verdicts could not be kept in {kept_in} ({error.strerror})."
    return f" All verdicts are in {kept_in}."
