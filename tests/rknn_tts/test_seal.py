"""The seal over an exported ONNX: its verdicts are about exactly that graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from contracts.contract import METADATA_KEY, Contract, Source, TensorSpec
from contracts.errors import Refusal
from rknn_tts.carried import FEEDS_KEY, SEAL_KEY, carry, check_seal, without_carried


def graph(weight: float = 0.5) -> bytes:
    node = onnx.helper.make_node("Mul", ["x", "w"], ["y"], "scale")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("x", "y"))
    w = onnx.numpy_helper.from_array(np.array([weight, 2.0], np.float32), "w")
    made = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y], [w]))
    made.metadata_props.add(key="author", value="somebody")
    return bytes(made.SerializeToString(deterministic=True))


def sealed() -> bytes:
    contract = Contract("piper", "decoder", Source("v", "00", "package"), (TensorSpec("x", (2,)),), ())
    return carry(graph(), contract, [{"x": np.ones(2, np.float32)}])


def edited(change: Callable[[onnx.ModelProto], None]) -> bytes:
    model = onnx.load_model_from_string(sealed())
    change(model)
    return bytes(model.SerializeToString())


def set_weight(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([0.6, 2.0], np.float32), "w"))


def set_entry(key: str, old: str, new: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        entry = next(entry for entry in model.metadata_props if entry.key == key)
        assert old in entry.value
        entry.value = entry.value.replace(old, new)

    return change


def drop_seal(model: onnx.ModelProto) -> None:
    kept = [entry for entry in model.metadata_props if entry.key != SEAL_KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


def test_carry_keeps_the_graph_and_its_own_metadata() -> None:
    assert without_carried(sealed()) == graph()


def test_check_seal_passes_when_nothing_was_changed_but_the_serialisation() -> None:
    check_seal(edited(lambda model: None), "m.onnx")


@pytest.mark.parametrize(
    "change",
    [
        set_weight,
        set_entry(METADATA_KEY, '"family":"piper"', '"family":"other"'),
        set_entry(FEEDS_KEY, "e", "f"),
        drop_seal,
    ],
    ids=["weight", "contract", "feeds", "no seal"],
)
def test_check_seal_refuses_when_something_was_changed(change: Callable[[onnx.ModelProto], None]) -> None:
    with pytest.raises(Refusal, match=r"^m\.onnx: was changed after it was exported"):
        check_seal(edited(change), "m.onnx")
