"""Running surgery passes on a model: which, in what order, and what becomes of a pass that breaks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import onnx_ir as ir

from contracts.errors import RknnTtsError, ToolFailure, UserInput
from contracts.verdicts import Verdict, failure
from gates.sentences import listed
from rknn_tts.hints import which_pass
from surgery.catalogue import CATALOGUE
from surgery.declaration import Pass, Refused, Rewritten, check_order


def without_skipped(passes: Sequence[Pass], skipped: Sequence[str]) -> tuple[Pass, ...]:
    """`passes` but for those named in `skipped`.

    Raises:
        UserInput: a name in `skipped` is of no pass there is.
    """
    names = [declaration.name for declaration in CATALOGUE]
    for name in skipped:
        if name not in names:
            raise UserInput(f"--no-pass {name:.100}: there is no such pass.{which_pass(name, names, '--no-pass')}")
    return tuple(bound for bound in passes if bound.name not in skipped)


def rewrite(model: ir.Model, passes: Sequence[Pass]) -> list[Rewritten]:
    """Run `passes` on `model` in order; what each returned.

    Raises:
        ValueError: the order of the passes breaks a declared constraint.
        ToolFailure: a pass broke on this graph; the message names it, and how to go on without.
    """
    check_order(passes)
    done: list[Rewritten] = []
    for bound in passes:
        try:
            done.append(bound.rewrite(model))
        except RknnTtsError:
            raise
        except Exception as error:  # whatever a library under it raises on a graph that nobody vouches for
            raise ToolFailure(
                f"The pass {bound.name} broke on this graph ({_first_line(error)}); compile, engine and export go "
                f"without it by --no-pass {bound.name}."
            ) from error
        model = done[-1].model
    return done


def refusals(passes: Sequence[Pass], rewritten: Sequence[Rewritten]) -> list[Verdict]:
    """A failed verdict for all places that a pass had to rewrite and could not for one reason."""
    places: dict[tuple[str, Refused], list[str]] = {}
    for bound, result in zip(passes, rewritten, strict=True):
        for refused in result.refused:
            places.setdefault((bound.name, dataclasses.replace(refused, node="")), []).append(refused.node)
    return [
        failure(f"pass.{name}", f"refused at {listed(nodes)}: {why.precondition}: {why.limit} is needed, {why.got}")
        for (name, why), nodes in places.items()
    ]


def _first_line(error: Exception) -> str:
    text = (str(error).strip().splitlines() or [""])[0].rstrip(".")[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
