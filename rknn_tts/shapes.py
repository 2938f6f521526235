"""The sizes of a foreign graph's inputs: as the file states them, as `--shape` and `--inputs` give them.

A symbolic size that one input is given holds for every input that states it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import onnx_ir as ir

from contracts.errors import Refusal, UserInput
from rknn_tts.hints import called, did_you_mean

Shape = tuple[int, ...]

LARGEST_SIZE = 2**31 - 1
"""Of one axis: the toolkit counts in 32 bits (its layer table and memory totals)."""

_SHAPE = re.compile(r"(?P<name>.+):(?P<sizes>\d+(?:,\d+)*)", re.DOTALL)


def parse_shapes(texts: Sequence[str]) -> dict[str, Shape]:
    """The shapes that `--shape NAME:1,192,93` gives, by input; the name may hold colons.

    Raises:
        UserInput: a text is no such thing, or an input is given two shapes.
    """
    shapes: dict[str, Shape] = {}
    for text in texts:
        match = _SHAPE.fullmatch(text)
        sizes = tuple(int(size[:11]) for size in match["sizes"].split(",")) if match else ()
        if match is None or not all(1 <= size <= LARGEST_SIZE for size in sizes):
            raise UserInput(
                f"--shape {text:.200}: an input's name and its sizes are expected, whole numbers above 0 with commas "
                "between them: --shape tokens:1,64"
            )
        if shapes.setdefault(match["name"], sizes) != sizes:
            raise UserInput(f"--shape gives the input {called(match['name'])} two shapes.")
    return shapes


def agreed(
    given: Mapping[str, Shape], arrays: Mapping[str, Shape], origin: str = "its array in --inputs"
) -> dict[str, Shape]:
    """The shapes that `--shape` gives, and those of the `arrays` of `--inputs` or of another `origin`.

    Raises:
        UserInput: the two disagree about an input.
    """
    for name in given.keys() & arrays.keys():
        if given[name] != arrays[name]:
            raise UserInput(f"--shape {name}:{_text(given[name])}: {origin} has the shape {list(arrays[name])}.")
    return {**arrays, **given}


def resolve_shapes(
    inputs: Sequence[ir.Value], given: Mapping[str, Shape], where: str, unused: Collection[str] = ()
) -> dict[str, Shape]:
    """A static shape for each of `inputs`, by name.

    Args:
        inputs: the graph's.
        given: what the user gives.
        where: what sentences call the file.
        unused: inputs that no output depends on: any size will do.

    Raises:
        UserInput: `given` names no input, or disagrees with what the file states.
        Refusal: an input has a size that nothing gives, or is no tensor.
    """
    stated = {str(value.name): _stated(value, where) for value in inputs}
    for name in given:
        if name not in stated:
            hint = did_you_mean(name, stated) or f" Its inputs are {', '.join(stated) or 'none'}."
            raise UserInput(f"--shape {name}:{_text(given[name])}: {where} has no input {called(name)}.{hint}")
    bound: dict[str, int] = {}
    for name, shape in given.items():
        _bind(name, shape, stated[name], bound, where)
    resolved: dict[str, Shape] = {}
    missing: list[str] = []
    for name, sizes in stated.items():
        filled = given.get(name) or _filled(sizes, bound)
        if filled is None and name in unused:
            resolved[name] = tuple(size if isinstance(size, int) else 1 for size in sizes or ())
        elif filled is None:
            missing.append(name)
        else:
            resolved[name] = filled
    if missing:
        raise Refusal(_missing_sentence(where, {name: stated[name] for name in missing}))
    return resolved


def _stated(value: ir.Value, where: str) -> tuple[int | str | None, ...] | None:
    """The sizes that the file states, a symbolic one as its name; None where it states no rank."""
    if value.type is not None and not isinstance(value.type, (ir.TensorType, ir.SparseTensorType)):
        kind = type(value.type).__name__.removesuffix("Type").lower()
        raise Refusal(
            f"{where}: the input {called(str(value.name))} is of the kind {kind}; the NPU takes tensors only."
        )
    if value.shape is None:
        return None
    return tuple(size if isinstance(size, int) else size.value for size in value.shape)


def _bind(
    name: str, shape: Shape, stated: tuple[int | str | None, ...] | None, bound: dict[str, int], where: str
) -> None:
    """Check `shape` against what is `stated`, and note in `bound` what its symbolic sizes are."""
    if stated is None:
        return
    text = f"--shape {name}:{_text(shape)}: in {where} the input {called(name)} is [{_names(stated)}]"
    if len(shape) != len(stated):
        raise UserInput(f"{text}: {len(stated)} sizes are needed.")
    for size, symbol in zip(shape, stated, strict=True):
        if isinstance(symbol, int) and symbol != size:
            raise UserInput(f"{text}: {size} is not {symbol}. Its fixed sizes are part of the graph; export it anew.")
        if isinstance(symbol, str) and bound.setdefault(symbol, size) != size:
            raise UserInput(f"{text}: {symbol} is {size} here and {bound[symbol]} elsewhere.")


def _filled(stated: tuple[int | str | None, ...] | None, bound: Mapping[str, int]) -> Shape | None:
    if stated is None:
        return None
    sizes = [bound.get(size) if isinstance(size, str) else size for size in stated]
    return tuple(size for size in sizes if size is not None) if None not in sizes else None


def _missing_sentence(where: str, missing: Mapping[str, tuple[int | str | None, ...] | None]) -> str:
    open_inputs = [
        f"the input {called(name)} has no shape" if sizes is None else f"the input {called(name)} is [{_names(sizes)}]"
        for name, sizes in missing.items()
    ]
    symbols = {size for sizes in missing.values() for size in sizes or () if isinstance(size, str)}
    names = f" with numbers for {' and '.join(sorted(symbols))}" if symbols else ""
    examples = " ".join(
        f"--shape {name}:{_names(sizes, ',') if sizes is not None else '1,64'}" for name, sizes in missing.items()
    )
    return f"{where}: {', '.join(open_inputs)}, and an engine has fixed sizes: give them{names}: {examples}"


def _names(sizes: Sequence[int | str | None], between: str = ", ") -> str:
    return between.join("?" if size is None else str(size) for size in sizes)


def _text(shape: Shape) -> str:
    return ",".join(map(str, shape))
