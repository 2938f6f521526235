"""What an operator's form is compiled as: its small graph behind the passes that write it, and what is right for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from contracts.contract import RANDOM, Source
from contracts.files import sha256_of_bytes
from converters.stages import Session as OpenedSession
from gates.session import Session
from gates.snr import compare_outputs, verdict_of
from rknn_tts.export_step import Proof
from rknn_tts.finished_graph import serialised
from rknn_tts.foreign_onnx import EQUAL_DB, ORIGINAL_GATE
from rknn_tts.parity import followed_feeds, judge_passes, least_db
from rknn_tts.probe.forms import MASK, OperatorForm, graph_of
from rknn_tts.probe.micro_engines import MicroGraph
from rknn_tts.rewriting import rewrite
from surgery.catalogue import CATALOGUE
from surgery.declaration import Pass
from surgery.preflight import owed
from surgery.rewrite_interface_axes import rewrite_interface_axes

STEM = "operator-"
"""Begins the names of the files of an operator's engine, and those of its build logs."""


def operator_graph(form: OperatorForm, target: str) -> MicroGraph | None:
    """The graph of `form` for `target`; what is right is what the original operator gives in onnxruntime, in fp32.

    Returns:
        None where its passes leave it alone on this target.

    Raises:
        ToolFailure: a pass broke, or onnxruntime did.
    """
    original = form.model()
    start = original if form.written is None else graph_of(form.written)
    own = form.passes(target)
    passes = _in_order((rewrite_interface_axes(), *own, *owed()))
    rewritten = rewrite(start, passes)
    if any(not done.hits for bound, done in zip(passes, rewritten, strict=True) if bound in own):
        return None
    feed = form.feed()
    full = {name: np.ones_like(array) if name == MASK else array for name, array in feed.items()}
    parity = judge_passes(passes, start, rewritten, _session, [full], padded_feeds=[feed])
    (followed,) = followed_feeds(start, rewritten, _session, [feed])
    made, right = parity.session(followed), form.right(feed, _session)
    expected = {name: array.reshape(made[name].shape) for name, array in right.items()}
    detail = "the graph that is compiled against the original operator, both in onnxruntime"
    owed_db = least_db(passes, rewritten, EQUAL_DB)
    verdict = verdict_of(ORIGINAL_GATE, compare_outputs(expected, made), owed_db, detail)
    return MicroGraph(
        stem=f"{STEM}{form.name}",
        model=rewritten[-1].model,
        source=Source(f"a specimen of {form.name}", sha256_of_bytes(serialised(original)), RANDOM),
        feeds=[followed],
        expected=[expected],
        proof=Proof(parity.records, (*parity.verdicts, verdict), ()),
        rewritten=rewritten,
    )


def _in_order(passes: Sequence[Pass]) -> tuple[Pass, ...]:
    """Each of `passes` once, the first of a name, as the catalogue has them."""
    named = {bound.name: bound for bound in reversed(passes)}
    return tuple(named[declaration.name] for declaration in CATALOGUE if declaration.name in named)


def _session(model: ir.Model) -> OpenedSession:
    return Session(model).run
