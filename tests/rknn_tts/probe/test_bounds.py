"""What a board owes: by hand."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from contracts.manifest import read_manifest
from contracts.quantisation import Quantisation
from contracts.verdicts import Measurement
from rknn_tts.probe.bounds import bounds_of, operator_bound_db
from tests.runtime.probing.kits import write_subject


@pytest.mark.parametrize(
    ("simulated", "bound"), [(50.8, 44.8), (46.0, 40.0), (41.0, 40.0), (72.0, 66.0), (80.0, 66.0), (math.inf, 66.0)]
)
def test_operator_owes_the_simulator_s_figure_less_a_bit_and_between_40_and_66(simulated: float, bound: float) -> None:
    assert operator_bound_db(simulated) == pytest.approx(bound)


def test_output_has_a_bound_of_its_own_when_the_manifest_has_one(tmp_path: Path) -> None:
    write_subject(tmp_path)
    manifest = read_manifest(tmp_path / "net.json")
    own = dataclasses.replace(manifest, thresholds={"simulator": 50.0, "simulator.y": 55.0})
    assert bounds_of(own)[0] == {"y": 55.0}
    assert bounds_of(dataclasses.replace(manifest, thresholds={}))[0] == {"y": 40.0}


def test_engine_of_8_bits_is_bounded_by_what_it_reached_when_other_figures_judge_it(tmp_path: Path) -> None:
    write_subject(tmp_path)
    manifest = read_manifest(tmp_path / "net.json")
    eight = dataclasses.replace(manifest, quantisation=Quantisation(), measurements=(figure(34.5),))
    bounds, why = bounds_of(eight)
    assert bounds == {"y": 28.5}
    assert "8 bits" in why
    assert bounds_of(dataclasses.replace(eight, measurements=()))[0] == {"y": 40.0}  # one that insists on the ratio


def figure(db: float) -> Measurement:
    return Measurement(name="simulator", measured=db, unit="dB", reason="")
