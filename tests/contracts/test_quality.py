from __future__ import annotations

import math
from dataclasses import replace

import pytest

from contracts.contract import contract_from_metadata, contract_to_metadata
from contracts.contract_faults import contract_fault
from contracts.quality import FIGURES, Istft, Quality, quality_fault
from tests.contracts.samples import CONTRACT

GOOD = (
    Quality("mel_l1", "output", 0.02, mask="z", remark="of log mel values"),
    Quality("mel_cosine", "output"),
    Quality("log_spectral_distance", "output", 1.5, istft=Istft(16, 4, 100.0)),
)


def test_figures_that_make_sense_have_no_fault() -> None:
    assert quality_fault(GOOD, {"z", "ids"}, {"output"}) is None


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_may_be_stated(figure: str) -> None:
    assert quality_fault([Quality(figure, "output", 1.0)], (), {"output"}) is None


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (Quality("beauty", "output"), "'beauty' is none of mel_l1, "),
        (Quality("mel_l1", "samples"), "is of 'samples', which is no output"),
        (Quality("mel_l1", "output", mask="mask"), "has the mask 'mask', which is no input"),
        (Quality("mel_l1", "output", math.nan), "has the bound nan"),
        (Quality("mel_l1", "output", math.inf), "has the bound inf"),
        (Quality("mel_l1", "output", istft=Istft(16, 4)), "is none of a waveform"),
        (Quality("log_spectral_distance", "output", istft=Istft(15, 5)), "15 samples by 5"),
        (Quality("log_spectral_distance", "output", istft=Istft(16, 16)), "16 samples by 16"),
        (Quality("log_spectral_distance", "output", istft=Istft(16, 0)), "16 samples by 0"),
        (Quality("log_spectral_distance", "output", istft=Istft(0, 4)), "0 samples by 4"),
        (Quality("log_spectral_distance", "output", istft=Istft(16, 5)), "16 samples by 5"),
        (Quality("log_spectral_distance", "output", istft=Istft(16, 4, 0.0)), "cuts magnitudes at 0.0"),
        (Quality("log_spectral_distance", "output", istft=Istft(16, 4, math.nan)), "cuts magnitudes at nan"),
    ],
)
def test_figures_that_make_no_sense_are_named(item: Quality, says: str) -> None:
    assert says in str(quality_fault([*GOOD[1:2], item], {"z"}, {"output"}))


def test_a_figure_of_an_output_is_stated_once() -> None:
    assert "'output' is stated 2 times" in str(quality_fault([GOOD[1], GOOD[1]], (), {"output"}))
    assert quality_fault([GOOD[1], replace(GOOD[1], output="other")], (), {"output", "other"}) is None


def test_figures_survive_metadata_and_a_contract_without_them_is_read() -> None:
    contract = replace(CONTRACT, quality=GOOD)
    assert contract_from_metadata(contract_to_metadata(contract)) == contract
    assert CONTRACT.quality == ()


def test_contract_with_a_figure_of_no_output_is_refused() -> None:
    assert contract_fault(replace(CONTRACT, quality=GOOD)) is None
    fault = contract_fault(replace(CONTRACT, quality=(Quality("mel_l1", "samples"),)))
    assert "'samples', which is no output" in str(fault)
