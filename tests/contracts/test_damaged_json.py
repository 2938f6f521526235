"""Damaged JSON of ours ends in a sentence, or is read: nothing else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from contracts.contract import METADATA_KEY, contract_from_metadata, contract_to_metadata
from contracts.contract_faults import contract_fault
from contracts.errors import UserInput
from contracts.manifest import manifest_text, read_manifest
from tests.contracts.samples import CONTRACT, MANIFEST
from tests.mutations import mutations

PIECES = (
    b"null", b"NaN", b"Infinity", b"1e999", b"-1", b"[", b"{", b'"', b"true", b"9" * 400, b"9" * 5000, b"\\ud800",
    b"\xff", b"3.5", b",", b":", b"}", b"]",
)  # fmt: skip


def test_damaged_manifest_ends_in_a_sentence_or_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    for damaged in mutations(manifest_text(MANIFEST).encode(), 3000, PIECES):
        path.write_bytes(damaged)
        with suppress(UserInput):
            manifest_text(read_manifest(path))


def test_damaged_contract_is_a_value_error_or_can_be_judged() -> None:
    for damaged in mutations(contract_to_metadata(CONTRACT)[METADATA_KEY].encode(), 3000, PIECES):
        with suppress(ValueError):
            contract = contract_from_metadata({METADATA_KEY: damaged.decode("utf-8", errors="replace")})
            assert contract is not None
            contract_fault(contract)
