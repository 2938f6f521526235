"""The compiler's layer table: where each layer runs, its cycles and its traffic, without a board.

`RKNN(verbose=True)` prints it after "Network Layer Information Table", and after it where each tensor between layers
lies, and the two memory totals:

    ID  OpType  DataType Target InputShape     OutputShape   Cycles(DDR/NPU/Total) RW(KB) FullName
    3   Slice   FLOAT16  CPU    (1,192,1,109)  (1,192,1,109) 0/0/0                 40     Slice:/flow/flows.7/Slice
    ...
    Feature Tensor Information Table
    ID  User  Tensor  DataType DataFormat OrigShape     NativeShape    |     [Start       End)       Size
    2   Conv  z       FLOAT16  NC1HWC2    (1,192,1,109) (1,98,1,109,8) | 0x00000000 0x0000a800 0x0000a800
    ...
    Total Internal Memory Size: 12212.5KB
    Total Weight Memory Size: 17129.8KB

Totals have six digits: from a million KB on they read `1.125e+06KB` (measured, 2.3.2). A full name may hold blanks and
colons, or be missing (measured, 2.3.2). Shapes that do not fit are printed as `...`. For rk3576 a column SparseRatio,
empty or a percentage, stands before RW (measured, 2.3.2). A star before its end marks the tensor that ends last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_KB_PER_UNIT = {"B": 1 / 1024, "KB": 1.0, "MB": 1024.0, "GB": 1024.0 * 1024.0}
_SIZE = r"(?P<size>\d+(?:\.\d+)?(?:e[+-]\d+)?) ?(?P<unit>[KMG]?B)?"

_TITLE = "Network Layer Information Table"
_HEADER = re.compile(r"ID +OpType +DataType +Target\b")
_RULE = re.compile(r"-{20,}\+?-*")
_ROW = re.compile(
    r"(?P<id>\d+) +(?P<op>\S+) +(?P<dtype>\S+) +(?P<target>\S+) +(?P<inputs>\S+) +(?P<outputs>\S+) +"
    rf"(?P<ddr>\d+)/(?P<npu>\d+)/(?P<total>\d+)(?: +\d+(?:\.\d+)?%)? +{_SIZE}(?: +(?P<name>.*))?"
)
_TOTAL = re.compile(rf"Total (?P<what>Internal|Weight) Memory Size: *{_SIZE}")
_FEATURES = "Feature Tensor Information Table"
_CONSTANTS = "Const Tensor Information Table"
_PLACE = re.compile(r".*\| (?P<start>0x[0-9a-f]+)[ *](?P<end>0x[0-9a-f]+) (?P<size>0x[0-9a-f]+)")
_PREFIX = re.compile(r"[DI] RKNN: \[[\d:.]+\] ?")


@dataclass(frozen=True)
class Layer:
    """One row of the table.

    Attributes:
        id: the layer's number.
        op: the compiler's operator ("ConvLeakyRelu").
        dtype: its data type ("FLOAT16").
        target: "NPU" or "CPU".
        inputs: input shapes as printed; a backslash where there is none.
        outputs: output shapes as printed.
        cycles_ddr: cycles of memory traffic.
        cycles_npu: cycles of arithmetic.
        cycles: the larger of both.
        rw_kb: traffic in KB.
        name: the full name, `op:node`; "" where none is printed.
    """

    id: int
    op: str
    dtype: str
    target: str
    inputs: str
    outputs: str
    cycles_ddr: int
    cycles_npu: int
    cycles: int
    rw_kb: float
    name: str


@dataclass(frozen=True)
class LayerTable:
    """The last layer table of a log, and the last memory totals.

    Attributes:
        layers: every layer, in order.
        internal_kb: memory of features in KB; None where the log does not say.
        weight_kb: memory of weights in KB; None where the log does not say.
        unread: rows that have another form, as printed: what is summed over `layers` lacks them.
        arena_bytes: where the last of the features ends, exactly, which `internal_kb` rounds to six digits; None where
            the log does not say.
    """

    layers: tuple[Layer, ...]
    internal_kb: float | None
    weight_kb: float | None
    unread: tuple[str, ...] = ()
    arena_bytes: int | None = None


def parse_layer_table(lines: Iterable[str]) -> LayerTable | None:
    """The last layer table among clean `lines`; None where there is none."""
    layers: list[Layer] = []
    unread: list[str] = []
    totals: dict[str, float] = {}
    arena_bytes: int | None = None
    found = in_title = in_rows = in_features = False
    for line in lines:
        text = _PREFIX.sub("", line, count=1).strip()
        if text == _TITLE:
            found, in_title, in_rows = True, True, False
            layers, unread, totals, arena_bytes, in_features = [], [], {}, None, False
        elif text in (_FEATURES, _CONSTANTS):
            in_features = text == _FEATURES
        elif in_features and (place := _PLACE.fullmatch(text)):
            arena_bytes = max(arena_bytes or 0, _end_bytes(place))
        elif in_title and _HEADER.match(text):
            in_title, in_rows = False, True
        elif total := _TOTAL.fullmatch(text):
            totals[total["what"]] = _kb(total["size"], total["unit"])
        elif in_rows and _RULE.fullmatch(text):
            # The rule under the header comes before any row; the next one ends the table.
            in_rows = not (layers or unread)
        elif in_rows and (row := _ROW.fullmatch(text)):
            layers.append(_layer(row))
        elif in_rows and text[:1].isdigit():
            unread.append(text)
    if not found:
        return None
    return LayerTable(tuple(layers), totals.get("Internal"), totals.get("Weight"), tuple(unread), arena_bytes)


def _layer(row: re.Match[str]) -> Layer:
    return Layer(
        id=int(row["id"]),
        op=row["op"],
        dtype=row["dtype"],
        target=row["target"],
        inputs=row["inputs"],
        outputs=row["outputs"],
        cycles_ddr=int(row["ddr"]),
        cycles_npu=int(row["npu"]),
        cycles=int(row["total"]),
        rw_kb=_kb(row["size"], row["unit"]),
        name=(row["name"] or "").strip(),
    )


def _end_bytes(place: re.Match[str]) -> int:
    """Where a tensor ends: by its size as well, should a compiler print ends in 32 bits, as it does starts."""
    return max(int(place["end"], 16), int(place["start"], 16) + int(place["size"], 16))


def _kb(size: str, unit: str | None) -> float:
    return float(size) * _KB_PER_UNIT[unit or "KB"]
