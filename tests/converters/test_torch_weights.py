"""State dicts that torch wrote: what is read of them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.torch_weights import check_weights, numbers_behind, read_weights, shape_of

SHAPES = {"a.weight": (2, 3), "a.bias": (2,)}


def written(path: Path, held: object) -> Path:
    torch.save(held, path)
    return path


def test_tensors_are_read_under_wanted_prefixes_only(tmp_path: Path) -> None:
    held = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.steps": torch.tensor(3), "epoch": 7}
    got = read_weights(written(tmp_path / "x.pt", held), "a net", "give one", ["a."])
    assert {name: array.tolist() for name, array in got.items()} == {"a.weight": [[0, 1, 2], [3, 4, 5]]}


def test_tensors_of_ignored_endings_are_left_out_whatever_they_are(tmp_path: Path) -> None:
    held = {"a.weight": torch.ones(1), "a.num_batches_tracked": torch.tensor(3)}
    path = written(tmp_path / "x.pt", held)
    assert list(read_weights(path, "a net", "give one", ignored=[".num_batches_tracked"])) == ["a.weight"]
    with pytest.raises(Refusal, match="num_batches_tracked is int64"):
        read_weights(path, "a net", "give one")


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (torch.zeros(2), "is no state dict but a tensor: the weights of a net are needed; give one"),
        ({"a": torch.zeros(2, dtype=torch.float16)}, "a is float16, float32 is needed; give one"),
        ({"a": 3}, "a is of the type int, not a tensor; give one"),
        ({"a": torch.zeros(2).to_sparse()}, "a is a sparse tensor, not a tensor; give one"),
    ],
)
def test_read_weights_refuses(tmp_path: Path, held: object, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        read_weights(written(tmp_path / "x.pt", held), "a net", "give one")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a.bias": None}, "is not a net: it lacks 1 of 2 tensors: a.bias; give one"),
        ({"a.bias": np.zeros(3, np.float32)}, r"1 tensors have other sizes: a.bias is \[3\], not \[2\]; give one"),
        ({"a.bias": np.array([1, np.nan], np.float32)}, "1 tensors hold NaN or infinity, .*: a.bias"),
    ],
)
def test_check_weights_refuses(change: dict[str, NDArray[np.float32] | None], said: str) -> None:
    whole = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    given = {name: array for name, array in {**whole, **change}.items() if array is not None}
    with pytest.raises(Refusal, match=said):
        check_weights(given, SHAPES, Path("x.pt"), "a net", "give one")


def test_check_weights_takes_more_than_it_asks_for() -> None:
    whole = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    check_weights({**whole, "extra": np.zeros(1, np.float32)}, SHAPES, Path("x.pt"), "a net", "give one")


def test_check_weights_refuses_others_where_there_are_to_be_none() -> None:
    held = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    held |= {f"c.{number}": np.zeros(1, np.float32) for number in range(4)}
    check_weights(held, SHAPES, Path("x.pt"), "a net", "give one")
    with pytest.raises(Refusal) as error:
        check_weights(held, SHAPES, Path("x.pt"), "a net", "give one", alone=True)
    assert str(error.value) == (
        "x.pt: is not a net: it has 4 tensors more, of parts that are not computed here: c.0, c.1, c.2 and 1 more; "
        "give one."
    )


def test_shape_of_is_a_tensors() -> None:
    held = {"a.weight": np.zeros((2, 3), np.float32)}
    assert shape_of(held, "a.weight", 2, Path("x.pt"), "a net", "give one") == (2, 3)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (None, "x.pt: is not a net: it lacks a.weight; give one."),
        (np.zeros(2, np.float32), "x.pt: is not a net: a.weight is [2], 2 axes are expected; give one."),
        (np.zeros((0, 3), np.float32), "x.pt: is not a net: a.weight is [0, 3], 2 axes are expected; give one."),
    ],
)
def test_shape_of_refuses(held: NDArray[np.float32] | None, said: str) -> None:
    weights = {} if held is None else {"a.weight": held}
    with pytest.raises(Refusal) as error:
        shape_of(weights, "a.weight", 2, Path("x.pt"), "a net", "give one")
    assert str(error.value) == said


def test_numbers_behind_counts_each_once() -> None:
    assert numbers_behind(["blocks.0.a", "blocks.0.b", "blocks.11.a", "block.5.a"], "blocks.") == 2
