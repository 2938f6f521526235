"""What the table does to a conversion: its passes, its contract, and what its export is found again by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.choices import AS_ASKED, BY_THE_TABLE, ON_A_SPECIMEN, ON_THIS_ENGINE, WITHOUT, Choice, Variant
from rknn_tts import checkpoint_to_onnx
from rknn_tts.checkpoint_to_onnx import Conversion, open_conversions
from rknn_tts.earning.table import Entry
from rknn_tts.request import Request
from tests.rknn_tts.workshop import Heard
from tests.vits_writer.voice import write_voice

W109 = "piper-decoder-w109 for rk3588 by rknn-toolkit2 2.3.2"
SCALES = Choice("fold_scales", WITHOUT, ON_THIS_ENGINE, W109, (Variant("with"), Variant(WITHOUT, 1, 0, 1, 1.0, 1.0)))
ENTRY = Entry("piper", "decoder", None, "piper-decoder-w109", 109, "rk3588", "2.3.2", "joe", (SCALES,))


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("voices") / "mini.onnx"
    write_voice(place)
    return str(place)


def conversion(
    voice: str,
    monkeypatch: pytest.MonkeyPatch,
    entries: tuple[Entry, ...],
    target: str | None = "rk3588",
    **more: object,
) -> Conversion:
    """Of the small voice, where the table holds `entries` for rk3588."""
    monkeypatch.setattr(
        checkpoint_to_onnx, "entries_for", lambda family, stage, target, toolkit: entries if target == "rk3588" else ()
    )
    request = replace(Request(command="export", family="piper", checkpoint=voice, window=80), **more)  # type: ignore[arg-type]
    (made,) = open_conversions(request, target, Heard())
    return made


def chosen(made: Conversion) -> dict[str, Choice]:
    return {choice.name: choice for choice in made.contract.choices}


def test_engine_goes_by_the_table_and_its_contract_says_so(voice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = conversion(voice, monkeypatch, (ENTRY,))
    assert "fold_scales" not in [bound.name for bound in made.passes]
    found = chosen(made)
    assert found["fold_scales"] == replace(SCALES, basis=BY_THE_TABLE)
    assert found["fold_channel_flips"].basis == ON_A_SPECIMEN


def test_engine_goes_by_small_graphs_where_nothing_was_weighed(voice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = conversion(voice, monkeypatch, ())
    assert "fold_scales" in [bound.name for bound in made.passes]
    assert {choice.basis for choice in made.contract.choices} == {ON_A_SPECIMEN}
    squares = chosen(made)["rewrite_squares"]
    assert (squares.kept, squares.weighed_on, squares.variants) == (WITHOUT, "docs/cuts.md", ())


def test_graph_for_all_targets_goes_by_small_graphs(voice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = conversion(voice, monkeypatch, (ENTRY,), target=None)
    assert {choice.basis for choice in made.contract.choices} == {ON_A_SPECIMEN}


def test_contract_says_what_the_user_left_out(voice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = conversion(voice, monkeypatch, (ENTRY,), no_pass=["fold_scales"])
    assert chosen(made)["fold_scales"] == Choice("fold_scales", WITHOUT, AS_ASKED, "--no-pass")


def test_export_is_not_found_again_when_the_table_says_otherwise(voice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_table, without, again = (conversion(voice, monkeypatch, entries).parts for entries in ((ENTRY,), (), (ENTRY,)))
    assert with_table == again
    assert with_table != without
