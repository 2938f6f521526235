"""What has been seen of a log so far: the one set of rules that the judge of a whole log and the live judge share.

`Tally.add` says at which line a gate can no longer pass. Memory does not grow with the log: counts, a few examples of
each class, and one row for each REGTASK key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from logs.classes import Line, classify
from logs.known_texts import FAILING, LineClass
from logs.regtask import REGTASK_FLOOD, REGTASK_MARK, Evidence, RegtaskKey, RegtaskLine, evidence_of

KEPT_EXAMPLES = 5
"""So many different lines of a class are kept and quoted; the rest are counted."""

QUOTED_CHARS = 300
"""A quoted line is cut at this length."""

_TRACEBACK = "Traceback (most recent call last):"
_RECORD_START = re.compile(r"[EWIDF] ")


@dataclass
class Examples:
    """How often a class of lines was seen, and the first few different ones."""

    count: int = 0
    kept: list[Line] = field(default_factory=list)

    def add(self, line: Line) -> None:
        """Count `line`, and keep it while it is new and there is room."""
        self.count += 1
        if len(self.kept) < KEPT_EXAMPLES and line not in self.kept:
            self.kept.append(line)


@dataclass
class FieldCount:
    """REGTASK lines of one key: how many, and the largest value."""

    count: int = 0
    max_value: int = 0

    def add(self, value: int) -> None:
        """Count one line with `value`."""
        self.count += 1
        self.max_value = max(self.max_value, value)


@dataclass
class Tally:
    """Counts of a log, line by line.

    Attributes:
        accepted: keys a user builds past.
        done: whether a build ended, and no other began after it.
        last: the last line that is not empty.
        exception: the exception that ends the first Python traceback.
        regtask_lines: REGTASK lines of any form.
        fields: REGTASK lines by key.
        classes: lines of the classes that are reported.
        in_traceback: whether the lines of a Python traceback are arriving.
        error_in_traceback: whether an `E build:` began it; its reason is the exception that ends it.
    """

    accepted: frozenset[RegtaskKey] = frozenset()
    done: bool = False
    last: str = ""
    exception: str | None = None
    regtask_lines: int = 0
    fields: dict[RegtaskKey, FieldCount] = field(default_factory=dict)
    classes: dict[LineClass, Examples] = field(default_factory=dict)
    in_traceback: bool = False
    error_in_traceback: bool = False

    def add(self, text: str) -> str | None:
        """Count the clean line `text`; a sentence where it settles that the log cannot pass.

        A traceback settles it at the exception that ends it. A line that repeats a settled reason may give None.
        """
        line = classify(text)
        self.last = text or self.last
        raised = self._follow_traceback(text)
        return self._count(text, line) or raised

    def _count(self, text: str, line: Line) -> str | None:
        if line.kind is LineClass.NOISE:
            return None
        if line.kind in (LineClass.STARTED, LineClass.DONE):
            self.done = line.kind is LineClass.DONE
            return None
        flood = self._count_regtask() if REGTASK_MARK in text else None
        if line.regtask is not None:
            return self._add_field(line.regtask) or flood
        self.classes.setdefault(line.kind, Examples()).add(line)
        if line.kind is LineClass.UNKNOWN_ERROR and self.in_traceback:
            self.error_in_traceback = True
            return flood
        return f"{describe(line)}." if line.kind in FAILING else flood

    def seen(self, kind: LineClass) -> Examples:
        """The lines of class `kind` so far."""
        return self.classes.get(kind, Examples())

    def fails(self, key: RegtaskKey) -> bool:
        """Whether a line of `key` fails this build."""
        return key not in self.accepted and evidence_of(key)[0] is not Evidence.UNPROVEN

    def _add_field(self, line: RegtaskLine) -> str | None:
        new = line.key not in self.fields
        self.fields.setdefault(line.key, FieldCount()).add(line.value)
        if not new or not self.fails(line.key):
            return None
        return f"REGTASK {line.key} with value {line.value:#x}: {evidence_of(line.key)[1]}."

    def _count_regtask(self) -> str | None:
        self.regtask_lines += 1
        return f"More than {REGTASK_FLOOD} REGTASK lines." if self.regtask_lines > REGTASK_FLOOD else None

    def _follow_traceback(self, text: str) -> str | None:
        if text.endswith(_TRACEBACK):
            self.in_traceback = True
        elif self.in_traceback and text and not text[0].isspace():
            self.in_traceback = False
            if not _RECORD_START.match(text):
                self.exception = self.exception or quoted(text)
            if self.error_in_traceback:
                return f"The toolkit raised {self.exception or 'an exception'}."
        return None


def quoted(text: str) -> str:
    """`text`, cut at `QUOTED_CHARS`."""
    return text if len(text) <= QUOTED_CHARS else text[:QUOTED_CHARS] + " ..."


def describe(line: Line) -> str:
    """What a line of a failing class says, without a full stop."""
    named = dict(line.groups)
    if line.kind is LineClass.RANDOM_WEIGHTS:
        which = f"of tensor {named['tensor']!r}" if "tensor" in named else "of a tensor"
        return f"The weights {which} are missing, and the toolkit put random numbers in their place"
    if line.kind is LineClass.NO_KERNEL:
        which = f"operator {named['op']} (node {named['node']!r})" if "op" in named else "an operator"
        return f"The board has no kernel for {which}"
    if line.kind is LineClass.BAD_TENSOR:
        return f"A tensor of the engine has no valid size ({quoted(line.message)})"
    return f"The toolkit printed an error that is not known to be harmless: `{quoted(line.message)}`"
