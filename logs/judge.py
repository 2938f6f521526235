"""The gates on the compiler's log. Return codes lie (0 for engines that are wrong), so the log is judged.

Every gate gives a verdict, also when it passes, always in this order:

    log.complete         the build came to its end
    log.random_weights   no weights were missing
    log.kernels          every operator has a kernel on the board
    log.memory           every tensor has memory
    log.regtask          one verdict a hardware field that overflowed, sorted by key; one that says there was none
    log.regtask_count    not more of them than 100 000
    log.unknown_errors   no error that nobody knows
    log.fallback         passed; says what the compiler moved to the CPU
    log.unknown_target   passed; counts `Unkown op target`
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from contracts.manifest import LogSummary, RegtaskCount
from contracts.verdicts import Status, Verdict, at_most, failure, passed
from logs.known_texts import LineClass
from logs.regtask import REGTASK_FLOOD, Evidence, RegtaskKey, evidence_of
from logs.tally import FieldCount, Tally, describe, quoted


@dataclass(frozen=True)
class LogJudgement:
    """The verdicts on one build log, and what the manifest keeps of it."""

    verdicts: tuple[Verdict, ...]
    summary: LogSummary


def judge_log(lines: Iterable[str], accepted: Collection[RegtaskKey] = ()) -> LogJudgement:
    """Judge a whole build log.

    Args:
        lines: its clean lines (`logs.lines`), in order.
        accepted: REGTASK keys that the user builds past (`--accept-regtask`); the flood is not among what they excuse.
    """
    tally = Tally(accepted=frozenset(accepted))
    for line in lines:
        tally.add(line)
    verdicts = (
        _complete(tally),
        _failing("log.random_weights", tally, LineClass.RANDOM_WEIGHTS, "no weights were missing"),
        _failing("log.kernels", tally, LineClass.NO_KERNEL, "every operator has a kernel"),
        _failing("log.memory", tally, LineClass.BAD_TENSOR, "every tensor has memory"),
        *_regtask(tally),
        _regtask_count(tally),
        _unknown_errors(tally),
        _fallback(tally),
        _unknown_target(tally),
    )
    return LogJudgement(verdicts, _summary(tally))


_REMEDIES = {
    LineClass.RANDOM_WEIGHTS: "Give the model together with its external data.",
    LineClass.NO_KERNEL: "Rewrite it with operators that have one, or keep it outside the engine.",
    LineClass.BAD_TENSOR: "Look for an empty or dynamic tensor in the graph.",
}


def _complete(tally: Tally) -> Verdict:
    if tally.done:
        return passed("log.complete", "the build came to its end")
    last = f"the last line is: {quoted(tally.last)}" if tally.last else "it is empty"
    return failure("log.complete", f"The log is cut off: the build did not come to its end; {last}.")


def _failing(gate: str, tally: Tally, kind: LineClass, clean: str) -> Verdict:
    examples = tally.seen(kind)
    if not examples.count:
        return passed(gate, clean, 0, "lines")
    sentences = list(dict.fromkeys(describe(line) for line in examples.kept))
    detail = f"{'; '.join(sentences)}{_more(examples.count)}. {_REMEDIES[kind]}"
    return failure(gate, detail, examples.count, "lines")


def _regtask(tally: Tally) -> tuple[Verdict, ...]:
    if not tally.fields:
        return (passed("log.regtask", "no hardware field overflowed", 0, "fields"),)
    return tuple(_field_verdict(tally, key, tally.fields[key]) for key in sorted(tally.fields))


def _field_verdict(tally: Tally, key: RegtaskKey, seen: FieldCount) -> Verdict:
    evidence, reason = evidence_of(key)
    what = (
        f"REGTASK field target {key.target}, offset {key.offset:#x}, shift {key.shift}: limit {key.limit:#x}, "
        f"largest value {seen.max_value:#x}, {_lines(seen.count)}"
    )
    if key in tally.accepted:
        known = "known to be wrong on a board: " if evidence is Evidence.FATAL else ""
        detail = f"{what}; {known}{reason}; accepted by the user (--accept-regtask {key})."
    elif evidence is Evidence.UNPROVEN:
        detail = f"{what}; {reason}: only a board can tell whether this engine is right."
    elif evidence is Evidence.FATAL:
        detail = f"{what}; {reason}. Change the graph: this engine would compute wrong values on a board."
    else:
        detail = f"{what}; {reason}. To build past it: --accept-regtask {key}."
    return Verdict(
        gate="log.regtask",
        measured=f"{seen.max_value:#x}",
        threshold=f"{key.limit:#x}",
        status=Status.FAILED if tally.fails(key) else Status.UNPROVEN,
        detail=detail,
    )


def _regtask_count(tally: Tally) -> Verdict:
    detail = "REGTASK lines in all"
    if tally.regtask_lines > REGTASK_FLOOD:
        detail = (
            f"{tally.regtask_lines} REGTASK lines: so many fail whatever their fields, and none can be accepted. "
            "Make the window smaller or split the layer."
        )
    return at_most("log.regtask_count", tally.regtask_lines, REGTASK_FLOOD, "lines", detail)


def _unknown_errors(tally: Tally) -> Verdict:
    errors = tally.seen(LineClass.UNKNOWN_ERROR)
    if not errors.count:
        return passed("log.unknown_errors", "no error that is not known to be harmless", 0, "lines")
    raised = f"The toolkit raised {tally.exception}. " if tally.exception else ""
    quotes = "; ".join(f"`{quoted(line.message)}`" for line in errors.kept)
    detail = f"{raised}Errors that are not known to be harmless: {quotes}{_more(errors.count)}."
    return failure("log.unknown_errors", detail, errors.count, "lines")


def _fallback(tally: Tally) -> Verdict:
    fallback = tally.seen(LineClass.FALLBACK)
    if not fallback.count:
        return passed("log.fallback", "the compiler reports no CPU fallback", 0, "lines")
    quotes = "; ".join(quoted(line.message) for line in fallback.kept)
    return passed(
        "log.fallback", f"CPU fallback, slow and not wrong: {quotes}{_more(fallback.count)}", fallback.count, "lines"
    )


def _unknown_target(tally: Tally) -> Verdict:
    count = tally.seen(LineClass.UNKNOWN_TARGET).count
    return passed("log.unknown_target", "`Unkown op target` lines, noise on ordinary graphs", count, "lines")


def _summary(tally: Tally) -> LogSummary:
    return LogSummary(
        regtask=tuple(
            RegtaskCount(
                target=key.target,
                offset=f"{key.offset:#x}",
                shift=key.shift,
                limit=f"{key.limit:#x}",
                max_value=f"{tally.fields[key].max_value:#x}",
                count=tally.fields[key].count,
            )
            for key in sorted(tally.fields)
        ),
        unknown_target=tally.seen(LineClass.UNKNOWN_TARGET).count,
        fallback=tuple(quoted(line.message) for line in tally.seen(LineClass.FALLBACK).kept),
        accepted=tuple(str(key) for key in sorted(tally.fields) if key in tally.accepted),
    )


def _more(count: int) -> str:
    return f" ({_lines(count)} in all)" if count > 1 else ""


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
