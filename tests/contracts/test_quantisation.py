"""A quantisation that was read from a file is one that can be built."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from contracts.contract import contract_from_metadata, contract_to_metadata, short_contract
from contracts.contract_faults import contract_fault
from contracts.quantisation import Quantisation
from tests.contracts.samples import CONTRACT, SHA

GOOD = Quantisation(calibration="file", windows=200, sha256=SHA)


@pytest.mark.parametrize(
    "changes", [{}, {"algorithm": "mmse"}, {"algorithm": "kl_divergence", "method": "layer"}, {"calibration": "feeds"}]
)
def test_contract_with_a_quantisation_survives_metadata_and_has_no_fault(changes: dict[str, Any]) -> None:
    contract = replace(CONTRACT, quantisation=replace(GOOD, **changes))
    assert contract_from_metadata(contract_to_metadata(contract)) == contract
    assert contract_fault(contract) is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dtype": "w4a16"}, "its precision 'w4a16' is none of w8a8"),
        ({"dtype": "fp16"}, "its precision 'fp16' is none of w8a8"),
        ({"algorithm": "gdq"}, "its quantisation algorithm 'gdq' is none of normal, mmse, kl_divergence"),
        ({"method": "tensor"}, "its quantisation method 'tensor' is none of channel, layer"),
        ({"calibration": "guessed"}, "its calibration 'guessed' is none of file, synthetic, feeds"),
        ({"windows": 0}, "its calibration has no windows, or no digest"),
        ({"sha256": ""}, "its calibration has no windows, or no digest"),
        ({"sha256": f"{SHA}\n"}, "its calibration has no windows, or no digest"),
    ],
)
def test_contract_fault_names_what_cannot_be_built(changes: dict[str, Any], says: str) -> None:
    assert contract_fault(replace(CONTRACT, quantisation=replace(GOOD, **changes))) == says


@pytest.mark.parametrize(("quantisation", "precision"), [(None, None), (GOOD, "w8a8")])
def test_short_contract_tells_the_precision_that_is_not_fp16(
    quantisation: Quantisation | None, precision: str | None
) -> None:
    text = short_contract(replace(CONTRACT, quantisation=quantisation), "rk3588", "2.3.2")
    assert json.loads(text).get("precision") == precision
