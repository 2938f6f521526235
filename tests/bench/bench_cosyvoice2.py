"""What CosyVoice2's engines take and give at the published sizes: of `engine cosyvoice2 --all`, and one more flow.

`make bench` runs it, in a quarter of an hour on a machine that does nothing else; it fails where a bound of issue 8 is
not met, or where docs/cosyvoice2.md shows another cost. All figures are in `build-logs/bench-cosyvoice2.json`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rknn_tts.steps import ROOT
from tests.bench.cosyvoice_costs import Cost, Run, lines_of, rows_told, run, told_otherwise, write_figures

FLOW, WHOLE_FLOW, HEAD = "flow_estimator-t16", "flow_estimator-s200", "speech_head-w8a8"

ROWS = {
    "speaker-t200": "`speaker`, 200 frames",
    "speaker-t400": "`speaker`, 400 frames",
    "flow_encoder-t16+3": "`flow_encoder`, 16 tokens and 3 ahead",
    "flow_encoder-t16+1": "`flow_encoder`, 16 tokens and 1 ahead",
    FLOW: "`flow_estimator`, a step of 32 frames",
    WHOLE_FLOW: "`flow_estimator`, 200 frames",
    "f0-b32": "`f0`, 32 frames",
    "f0-b40": "`f0`, 40 frames",
    "hift-b32": "`hift`, 32 frames",
    "hift-b40": "`hift`, 40 frames",
    HEAD: "`speech_head`, W8A8",
}
"""The engines, and what the page's table calls them."""

LEAST_DB = {FLOW: 33.0, WHOLE_FLOW: 33.0}
"""Issue 8, of the simulator; the head in 8 bits owes a cosine."""
ELSEWHERE_DB = 40.0
"""The same, of the others."""

QUALITY = {
    FLOW: ("quality.mel_cosine", 0.999989),
    WHOLE_FLOW: ("quality.mel_cosine", 0.999989),
    "speaker-t200": ("quality.embedding_cosine", 0.9999),
    "speaker-t400": ("quality.embedding_cosine", 0.9999),
    HEAD: ("quality.logits_cosine", 0.9998),
}
"""Issue 8: the least cosines; the head's is of a synthetic calibration set. The flow's is what the reference's board
keeps of a mel in fp16."""

LEAST_CHUNKED_DB = 100.0
"""Of a walk of steps against the whole stream, which is our own bound (docs/cosyvoice2.md)."""

PAGE = ROOT / "docs" / "cosyvoice2.md"
REPORT = ROOT / "build-logs" / "bench-cosyvoice2.json"


@dataclass(frozen=True)
class Family:
    """Three commands over one cache of finished steps: `--all`, the same again, and the flow of 200 frames."""

    everything: Run
    again: Run
    whole_flow: Run

    @property
    def engines(self) -> dict[str, Cost]:
        """All that were built, by what their names have behind the family's."""
        found = {**self.everything.engines, **self.whole_flow.engines}
        return {stem.removeprefix("cosyvoice2-"): cost for stem, cost in found.items()}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    folder = tmp_path_factory.mktemp("cosyvoice2")
    cache = folder / "cache"
    everything = run("cosyvoice2", folder / "all", cache, "--all")
    again = run("cosyvoice2", folder / "again", cache, "--all")
    whole_flow = run("cosyvoice2", folder / "flow", cache, "--stage", "flow_estimator", "--lengths", "200")
    return Family(everything, again, whole_flow)


def test_figures_are_shown(family: Family, capsys: pytest.CaptureFixture[str]) -> None:
    write_figures(REPORT, vars(family))
    with capsys.disabled():
        print("\n".join(["", *lines_of(list(vars(family).values())), f"All figures: {REPORT}"]))  # noqa: T201
    assert family.engines.keys() == ROWS.keys()


def test_a_finished_family_is_found_again(family: Family) -> None:
    assert family.everything.built == family.everything.engines.keys()
    assert family.again.built == set()
    assert family.again.engines.keys() == family.everything.engines.keys()
    assert family.again.measured.cpu_s / family.everything.measured.cpu_s < 1


@pytest.mark.parametrize("name", ROWS)
def test_nothing_of_an_engine_runs_on_the_cpu_or_overflows_a_field(family: Family, name: str) -> None:
    assert family.engines[name].cpu == {}
    assert family.engines[name].regtask == 0


@pytest.mark.parametrize("name", sorted(ROWS.keys() - {HEAD}))
def test_the_simulator_computes_an_engine_right(family: Family, name: str) -> None:
    assert family.engines[name].gates["simulator"] >= LEAST_DB.get(name, ELSEWHERE_DB)


@pytest.mark.parametrize("name", QUALITY)
def test_an_engine_says_what_the_original_says(family: Family, name: str) -> None:
    gate, least = QUALITY[name]
    assert family.engines[name].gates[gate] >= least


@pytest.mark.parametrize("name", ["flow_encoder-t16+3", "flow_encoder-t16+1", FLOW])
def test_a_walk_of_steps_is_the_whole_stream(family: Family, name: str) -> None:
    assert family.engines[name].gates["fp32.stepwise"] >= LEAST_CHUNKED_DB


@pytest.mark.parametrize("name", ROWS)
def test_the_page_shows_what_an_engine_costs(family: Family, name: str) -> None:
    assert told_otherwise(family.engines[name], rows_told(PAGE)[ROWS[name]]) == []
