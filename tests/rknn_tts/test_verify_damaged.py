"""Damaged results end in a sentence, or are taken, even where they are signed off: nothing else."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from rknn_tts_runtime.probing.kit_reading import open_kit
from rknn_tts_runtime.probing.result import result_text, sign_off_digest, signed_off
from rknn_tts_runtime.probing.run import run_kit

from contracts.errors import UserInput
from contracts.manifest import manifest_text, read_manifest
from rknn_tts.verify_record import with_board
from rknn_tts.verify_result import board_of, check_of_engine, read_result
from tests.contracts.test_damaged_json import PIECES
from tests.mutations import mutations
from tests.runtime.probing.boards import BoardBackend, write_board
from tests.runtime.probing.kits import write_kit


def signed_anew(damaged: bytes) -> bytes:
    """`damaged` with the digest of what it holds, where it can have one: a forger would do as much."""
    try:
        data = json.loads(damaged)
        data["signed_off"]["sha256"] = sign_off_digest(data)
        return json.dumps(data).encode()
    except (ValueError, TypeError, KeyError, AttributeError):
        return damaged


def test_damaged_result_ends_in_a_sentence_or_is_taken(tmp_path: Path) -> None:
    write_kit(tmp_path / "kit")
    root = write_board(tmp_path / "board")
    found = run_kit(open_kit(tmp_path / "kit"), BoardBackend(), lambda line: None, repeats=1, root=root)
    manifest = read_manifest(tmp_path / "kit" / "net.json")
    place = tmp_path / "r.json"
    taken = 0
    for damaged in mutations(result_text(signed_off(found, "Ada", "2026-11-30")).encode(), 300, PIECES):
        place.write_bytes(signed_anew(damaged))
        with suppress(UserInput):
            result = read_result(place)
            check_of_engine(place, result, manifest)
            assert manifest_text(with_board(manifest, board_of(result)))
            taken += 1
    assert taken > 20  # damage in a text, a time or a blank is no damage to what it proves
