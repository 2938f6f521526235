"""`--pass NAME` or `--pass NAME:key=value,...`: a pass of the catalogue, bound to its arguments.

A pass NAME is what the function NAME of the module `surgery.NAME` returns.
"""

from __future__ import annotations

import importlib
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from contracts.errors import UserInput
from engine.targets import resolve_target
from rknn_tts.hints import which_pass
from surgery.catalogue import CATALOGUE
from surgery.declaration import Pass, check_order

TARGET_ARGUMENT = "target"
"""The argument of a pass that decides place by place, for the target whose cost is asked for."""

ALWAYS_RUN = {"normalise_static_inputs": "--shape", "normalise_initializers": ""}
"""Passes that run on every file first, and the option that they take."""


def chosen_passes(texts: Sequence[str], target: str | None) -> tuple[Pass, ...]:
    """The passes that `texts` name, in their order.

    Args:
        texts: each `NAME` or `NAME:key=value,...`.
        target: for passes that decide by it; None: what pays on every target.

    Raises:
        UserInput: there is no such pass or argument, one is missing, or the order breaks a constraint.
    """
    passes = tuple(_bound(text, target) for text in texts)
    try:
        check_order(passes)
    except ValueError as error:
        raise UserInput(f"--pass: {error}.") from error
    return passes


def _bound(text: str, target: str | None) -> Pass:
    name, _, rest = text.partition(":")
    if name in ALWAYS_RUN:
        option = f": {ALWAYS_RUN[name]} gives it the sizes" if ALWAYS_RUN[name] else ""
        raise UserInput(f"--pass {name}: runs on every file first, and need not be named{option}.")
    names = [declaration.name for declaration in CATALOGUE]
    if name not in names:
        raise UserInput(f"--pass {name:.100}: there is no such pass.{which_pass(name, names, '--pass')}")
    factory: Callable[..., Pass] = getattr(importlib.import_module(f"surgery.{name}"), name)
    return _call(name, factory, rest, target)


def _call(name: str, factory: Callable[..., Pass], rest: str, target: str | None) -> Pass:
    hints = typing.get_type_hints(factory)
    parameters = inspect.signature(factory).parameters
    values: dict[str, Any] = {TARGET_ARGUMENT: target} if TARGET_ARGUMENT in parameters else {}
    given: set[str] = set()
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if key not in parameters or not equals:
            takes = ", ".join(f"{parameter}=..." for parameter in parameters) or "no arguments"
            raise UserInput(f"--pass {name}: takes {takes}; {pair[:100]!r} is none of that.")
        if key in given:
            raise UserInput(f"--pass {text_of(name, rest)}: {key} is given twice.")
        given.add(key)
        values[key] = _read(name, key, value, hints[key])
    missing = [key for key, one in parameters.items() if one.default is inspect.Parameter.empty and key not in values]
    if missing:
        raise UserInput(f"--pass {name}: needs {missing[0]}: --pass {name}:{missing[0]}=...")
    try:
        return factory(**values)
    except ValueError as error:
        raise UserInput(f"--pass {text_of(name, rest)}: {error}.") from error


def text_of(name: str, rest: str) -> str:
    """How the user wrote it."""
    return f"{name}:{rest}" if rest else name


def _read(name: str, key: str, value: str, hint: Any) -> Any:
    if key == TARGET_ARGUMENT:
        return _target(name, value)
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    choices = [choice for kind in kinds for choice in _choices(kind)]
    if choices:
        if value in choices:
            return value
        raise UserInput(f"--pass {name}:{key}={value:.100}: one of {', '.join(choices)} is expected.")
    for kind in (int, float, str):
        if kind in kinds:
            try:
                return kind(value)
            except ValueError:
                continue
    number = "a number" if float in kinds else "a whole number"
    expected = number if {int, float} & set(kinds) else "nothing that a command line can give"
    raise UserInput(f"--pass {name}:{key}={value:.100}: {expected} is expected.")


def _choices(kind: Any) -> list[str]:
    """The texts that an enumeration or a `Literal` lets through; none for any other kind."""
    if typing.get_origin(kind) is typing.Literal:
        return [str(choice) for choice in typing.get_args(kind)]
    return [choice.value for choice in kind] if inspect.isclass(kind) and issubclass(kind, Enum) else []


def _target(name: str, value: str) -> str:
    try:
        return resolve_target(value)
    except UserInput as error:
        raise UserInput(f"--pass {name}:{TARGET_ARGUMENT}={value:.100}: {error}") from error
