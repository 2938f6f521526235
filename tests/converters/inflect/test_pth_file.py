from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.errors import Refusal, UserInput
from converters.inflect.pth_file import read_pth

HELD: dict[Any, Any] = {"dec.conv_pre.bias": torch.arange(3.0), "dp.proj.bias": torch.tensor([2.5])}


def save(folder: Path, held: object) -> Path:
    torch.save(held, folder / "model.pth")
    return folder / "model.pth"


@pytest.mark.parametrize("held", [HELD, {"model": HELD, "iteration": 7}, {"state_dict": HELD}])
def test_read_pth_finds_the_state_dict_where_it_is(tmp_path: Path, held: object) -> None:
    got = read_pth(save(tmp_path, held))
    assert list(got) == list(HELD)
    np.testing.assert_array_equal(got["dec.conv_pre.bias"], [0, 1, 2])


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ([torch.ones(1)], "it is of the type list, not a state dict"),
        (torch.ones(1), "it is a tensor, not a state dict"),
        ({"model": [1]}, "model is of the type list, not a tensor"),
        ({**HELD, "epoch": 5}, "epoch is of the type int, not a tensor"),
        ({**HELD, 7: torch.ones(1)}, "has the key 7, which is no tensor's name"),
        ({"dp.proj.bias": torch.ones(2).half()}, r"dp\.proj\.bias is float16, float32 is needed"),
        ({"dp.proj.bias": torch.ones(2).to_sparse()}, r"dp\.proj\.bias is a sparse tensor, not a tensor"),
        ({"model": os.getcwd}, "holds objects or code besides tensors, and nothing in a checkpoint is run"),
    ],
)
def test_read_pth_names_what_is_no_checkpoint(tmp_path: Path, held: Any, told: str) -> None:
    with pytest.raises(Refusal, match=rf"model\.pth: .*{told}"):
        read_pth(save(tmp_path, held))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty"),
        (b"{}", "is no torch checkpoint, whatever its name says; give the folder of Inflect-Micro-v2"),
        (b"PK\x03\x04", "is no torch checkpoint, or is damaged"),
    ],
)
def test_read_pth_refuses_another_format(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "model.pth").write_bytes(data)
    with pytest.raises(UserInput, match=told):
        read_pth(tmp_path / "model.pth")
