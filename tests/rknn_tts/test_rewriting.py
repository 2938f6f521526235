from __future__ import annotations

import onnx_ir as ir
import pytest

from contracts.errors import Refusal, ToolFailure, UserInput
from contracts.verdicts import Status
from rknn_tts.rewriting import refusals, rewrite, without_skipped
from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.fold_with_onnxslim import fold_with_onnxslim
from surgery.normalise_header import normalise_header
from tests.gates.small_graphs import scale_proto


def model() -> ir.Model:
    return ir.from_proto(scale_proto(2.0))


def renaming(name: str, seen: list[str], after: str = "") -> Pass:
    """A pass that notes whose model it was given, and signs the one it returns."""

    def work(given: ir.Model) -> Rewritten:
        seen.append(f"{name} after {given.producer_name}")
        made = given.clone()
        made.producer_name = name
        return Rewritten(made, 1)

    return Pass(Declaration(name, "", Exact(""), frozenset(filter(None, [after]))), work)


def raising(error: Exception) -> Pass:
    def work(_: ir.Model) -> Rewritten:
        raise error

    return Pass(Declaration("fold_x", "", Exact("")), work)


def test_rewrite_runs_the_passes_in_order_on_each_others_results() -> None:
    seen: list[str] = []
    original = model()
    original.producer_name = "original"
    done = rewrite(original, [renaming("fold_a", seen), renaming("fuse_b", seen)])
    assert seen == ["fold_a after original", "fuse_b after fold_a"]
    assert [result.model.producer_name for result in done] == ["fold_a", "fuse_b"]


def test_rewrite_raises_when_the_order_breaks_a_constraint() -> None:
    with pytest.raises(ValueError, match="fold_a must run after fuse_b"):
        rewrite(model(), [renaming("fold_a", [], after="fuse_b"), renaming("fuse_b", [])])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (IndexError("list index out of range\nmore"), "IndexError: list index out of range"),
        (MemoryError(), "MemoryError"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_rewrite_names_the_pass_and_the_way_round_it_when_it_breaks(error: Exception, says: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        rewrite(model(), [raising(error)])
    assert str(caught.value) == (
        f"The pass fold_x broke on this graph ({says}); compile, engine and export go without it by --no-pass fold_x."
    )


def test_rewrite_lets_a_sentence_for_the_user_through() -> None:
    with pytest.raises(Refusal, match="told already"):
        rewrite(model(), [raising(Refusal("told already"))])


def test_refusals_say_which_pass_refused_where() -> None:
    passes = [Pass(Declaration("rewrite_x", "", Exact("")), lambda m: Rewritten(m, 0, (REFUSED,)))]
    assert [(v.gate, v.status, v.detail) for v in refusals(passes, rewrite(model(), passes))] == [
        ("pass.rewrite_x", Status.FAILED, "refused at conv_7: stride: at most 7 is needed, 15")
    ]


REFUSED = Refused("conv_7", "stride", "at most 7", "15")


def test_refusals_tell_a_reason_once_when_many_nodes_share_it() -> None:
    other = Refused("conv_9", "stride", "at most 7", "30")
    refused = (REFUSED, other, *(Refused(f"conv_{n}", "stride", "at most 7", "15") for n in range(20, 26)))
    passes = [Pass(Declaration("rewrite_x", "", Exact("")), lambda m: Rewritten(m, 0, refused))]
    assert [v.detail for v in refusals(passes, rewrite(model(), passes))] == [
        "refused at conv_7, conv_20, conv_21, conv_22, conv_23 and 2 more: stride: at most 7 is needed, 15",
        "refused at conv_9: stride: at most 7 is needed, 30",
    ]


def test_without_skipped_leaves_out_what_is_named() -> None:
    passes = (fold_with_onnxslim(), normalise_header())
    assert without_skipped(passes, ["fold_with_onnxslim"]) == passes[1:]
    assert without_skipped(passes, []) == passes
    assert without_skipped(passes, ["mask_decoder"]) == passes  # a pass there is, if not here


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("normalize_header", "--no-pass normalize_header: there is no such pass. Did you mean normalise_header?"),
        (
            "fold_scales,fold_shifts",
            "--no-pass fold_scales,fold_shifts: there is no such pass. Each is a --no-pass of its own.",
        ),
        ("zzz", "--no-pass zzz: there is no such pass. `rknn-tts passes` lists them."),
    ],
)
def test_without_skipped_refuses_a_name_of_no_pass(name: str, says: str) -> None:
    with pytest.raises(UserInput) as caught:
        without_skipped((), [name])
    assert str(caught.value) == says
