from __future__ import annotations

import base64
import dataclasses
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from contracts.contract import (
    METADATA_KEY,
    Contract,
    HostHalf,
    PassRecord,
    Source,
    TensorSpec,
    Window,
    contract_to_metadata,
)
from contracts.errors import Refusal, UserInput
from contracts.verdicts import at_least
from rknn_tts import carried as module
from rknn_tts.carried import (
    FEEDS_KEY,
    ORIGINALS_KEY,
    SEAL_KEY,
    carried_contract,
    carried_feeds,
    carried_originals,
    carry,
    check_seal,
    feeds_from_npz,
    feeds_to_npz,
    without_carried,
)
from tests.gates.small_graphs import scale_proto

CONTRACT = Contract(
    family="piper",
    stage="decoder",
    source=Source("voix à soi.onnx", "ab" * 32, "checkpoint"),
    inputs=(TensorSpec("x", (1, 4)),),
    outputs=(TensorSpec("y", (1, 4)),),
    window=Window(109, 45, 32, 32, 256, None),
    thresholds={"simulator": 40.0},
    passes=(PassRecord("fold_with_onnxslim", 3, True, float("inf")),),
    verdicts=(at_least("fp32.whole", 101.5, 95.0, "dB"),),
)
FEEDS: tuple[dict[str, NDArray[Any]], ...] = (
    {"x": np.array([[1, 2, 3, 4]], np.float32), "with/slash": np.zeros((2, 0), np.int64)},
    {"x": np.array([[5, 6, 7, 8]], np.float32), "with/slash": np.ones((2, 3), np.int64)},
)


def carrying(feeds_text: str | None = None, contract_text: str | None = None) -> ir.Model:
    """What a reader gets of a sealed ONNX; a text replaces an entry."""
    proto = onnx.load_model_from_string(carry(scale_proto(2.0).SerializeToString(), CONTRACT, FEEDS))
    for entry in proto.metadata_props:
        if entry.key == FEEDS_KEY and feeds_text is not None:
            entry.value = feeds_text
        if entry.key == METADATA_KEY and contract_text is not None:
            entry.value = contract_text
    return ir.from_proto(proto)


def test_contract_and_feeds_come_back_as_they_were() -> None:
    model = carrying()
    assert carried_contract(model, "m.onnx") == CONTRACT
    found = carried_feeds(model, "m.onnx")
    assert len(found) == len(FEEDS)
    for got, wanted in zip(found, FEEDS, strict=True):
        assert list(got) == list(wanted)
        for name, array in wanted.items():
            np.testing.assert_array_equal(got[name], array)
            assert got[name].dtype == array.dtype


def test_many_feeds_keep_their_order() -> None:
    feeds = [{"x": np.full((1,), i, np.float32)} for i in range(12)]
    assert [int(feed["x"][0]) for feed in feeds_from_npz(feeds_to_npz(feeds))] == list(range(12))


def test_carry_gives_the_same_bytes_each_time_and_again_on_its_own_result() -> None:
    graph = scale_proto(2.0).SerializeToString()
    once = carry(graph, CONTRACT, FEEDS)
    assert carry(graph, CONTRACT, FEEDS) == once
    assert carry(once, CONTRACT, FEEDS) == once


def test_graph_that_carries_nothing_has_no_contract_and_no_feeds() -> None:
    model = ir.from_proto(scale_proto(2.0))
    assert carried_contract(model, "m.onnx") is None
    assert carried_feeds(model, "m.onnx") == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"family": "piper"}', '{"family": 3}'])
def test_damaged_contract_is_refused_by_file(text: str) -> None:
    with pytest.raises(UserInput, match=r"^m\.onnx: carries a damaged contract \(.*\); export it again\.$"):
        carried_contract(carrying(contract_text=text), "m.onnx")


def test_contract_that_names_a_file_elsewhere_is_refused_by_file() -> None:
    changed = dataclasses.replace(CONTRACT, host=HostHalf("../piper-host.onnx", "ab" * 32))
    text = contract_to_metadata(changed)[METADATA_KEY]
    with pytest.raises(
        UserInput, match=r"^m\.onnx: carries a damaged contract \(its host half '\.\./piper-host\.onnx'"
    ):
        carried_contract(carrying(contract_text=text), "m.onnx")


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _npz(name: str, array: NDArray[Any], compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: array}
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


GOOD_NPZ = feeds_to_npz(FEEDS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no base64 !",
        base64.b64encode(b"no zlib").decode(),
        _packed(b""),
        _packed(b"no npz"),
        _packed(GOOD_NPZ[: len(GOOD_NPZ) // 2]),
        _packed(GOOD_NPZ)[: len(_packed(GOOD_NPZ)) // 8 * 4],
        _packed(_npz("0/x", np.array([{"a": 1}], dtype=object))),
    ],
    ids=["empty", "no base64", "no zlib", "nothing", "no npz", "npz cut off", "zlib cut off", "pickled"],
)
def test_damaged_feeds_are_refused_by_file(text: str) -> None:
    with pytest.raises(UserInput, match=r"^m\.onnx: carries damaged feeds \(.*\); export it again\.$"):
        carried_feeds(carrying(text), "m.onnx")


@pytest.mark.parametrize("name", ["x", "first/x", "/x"])
def test_feeds_of_other_names_are_refused(name: str) -> None:
    with pytest.raises(UserInput, match="carries damaged feeds"):
        carried_feeds(carrying(_packed(_npz(name, np.zeros(1)))), "m.onnx")


def test_feeds_that_unpack_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEEDS_LIMIT_BYTES", 1 << 16)
    bomb = _packed(b"\x00" * (1 << 24))
    assert len(bomb) < 1 << 16
    with pytest.raises(UserInput, match="more than 65536 bytes"):
        carried_feeds(carrying(bomb), "m.onnx")


def test_feeds_whose_arrays_unpack_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEEDS_LIMIT_BYTES", 1 << 16)
    bomb = _npz("0/x", np.zeros(1 << 22, np.float32), compressed=True)
    assert len(bomb) < 1 << 16
    with pytest.raises(UserInput, match="more than 65536 bytes"):
        carried_feeds(carrying(_packed(bomb)), "m.onnx")


def test_feeds_whose_header_claims_more_than_there_is_are_refused() -> None:
    claim = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }\n" % (1 << 50)
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(claim)) + claim
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("0/x.npy", header)
    with pytest.raises(UserInput, match="carries damaged feeds"):
        carried_feeds(carrying(_packed(buffer.getvalue())), "m.onnx")


def _authored() -> bytes:
    graph = scale_proto(2.0)
    graph.metadata_props.add(key="author", value="somebody")
    return bytes(graph.SerializeToString(deterministic=True))


def _edited(change: Callable[[onnx.ModelProto], None]) -> bytes:
    model = onnx.load_model_from_string(carry(_authored(), CONTRACT, FEEDS))
    change(model)
    return bytes(model.SerializeToString())


def _set_weight(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([2.5], np.float32), "k"))


def _set_entry(key: str, old: str, new: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        entry = next(entry for entry in model.metadata_props if entry.key == key)
        assert old in entry.value
        entry.value = entry.value.replace(old, new)

    return change


def _drop_seal(model: onnx.ModelProto) -> None:
    kept = [entry for entry in model.metadata_props if entry.key != SEAL_KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


ORIGINALS = ({"y": np.array([[2, 4, 6]], np.float32)}, {"y": np.array([[10, 12]], np.float32)})


def test_originals_come_back_as_they_were() -> None:
    model = ir.from_proto(onnx.load_model_from_string(carry(_authored(), CONTRACT, FEEDS, ORIGINALS)))
    found = carried_originals(model, "m.onnx")
    assert [{name: array.tolist() for name, array in outputs.items()} for outputs in found] == [
        {"y": [[2, 4, 6]]},
        {"y": [[10, 12]]},
    ]
    assert len(carried_feeds(model, "m.onnx")) == 2


def test_graph_whose_stage_says_no_originals_carries_none() -> None:
    model = onnx.load_model_from_string(carry(_authored(), CONTRACT, FEEDS))
    assert ORIGINALS_KEY not in {entry.key for entry in model.metadata_props}
    assert carried_originals(ir.from_proto(model), "m.onnx") == ()


def test_damaged_originals_are_refused_by_file() -> None:
    model = ir.from_proto(onnx.load_model_from_string(carry(_authored(), CONTRACT, FEEDS, ORIGINALS)))
    model.metadata_props[ORIGINALS_KEY] = "no base64 !"
    damaged = r"^m\.onnx: carries damaged outputs of the original \(.*\); export it again\.$"
    with pytest.raises(UserInput, match=damaged):
        carried_originals(model, "m.onnx")


def _replace_originals(model: onnx.ModelProto) -> None:
    entry = next(entry for entry in model.metadata_props if entry.key == ORIGINALS_KEY)
    entry.value = _packed(feeds_to_npz([{"y": np.ones((1, 3), np.float32)}] * 2))


def _drop_originals(model: onnx.ModelProto) -> None:
    kept = [entry for entry in model.metadata_props if entry.key != ORIGINALS_KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


@pytest.mark.parametrize("change", [_replace_originals, _drop_originals], ids=["other", "none"])
def test_check_seal_refuses_when_the_originals_outputs_were_changed(change: Callable[[onnx.ModelProto], None]) -> None:
    model = onnx.load_model_from_string(carry(_authored(), CONTRACT, FEEDS, ORIGINALS))
    check_seal(bytes(model.SerializeToString()), "m.onnx")
    change(model)
    with pytest.raises(Refusal, match=r"^m\.onnx: was changed after it was exported"):
        check_seal(bytes(model.SerializeToString()), "m.onnx")


def test_check_seal_refuses_when_originals_were_added() -> None:
    model = onnx.load_model_from_string(carry(_authored(), CONTRACT, FEEDS))
    model.metadata_props.add(key=ORIGINALS_KEY, value=_packed(feeds_to_npz(ORIGINALS)))
    with pytest.raises(Refusal, match=r"^m\.onnx: was changed after it was exported"):
        check_seal(bytes(model.SerializeToString()), "m.onnx")


def test_without_carried_gives_the_graph_and_its_own_metadata_back() -> None:
    assert without_carried(carry(_authored(), CONTRACT, FEEDS)) == _authored()
    assert without_carried(carry(_authored(), CONTRACT, FEEDS, ORIGINALS)) == _authored()


def test_check_seal_passes_when_nothing_was_changed_but_the_serialisation() -> None:
    check_seal(_edited(lambda model: None), "m.onnx")


@pytest.mark.parametrize(
    "change",
    [
        _set_weight,
        _set_entry(METADATA_KEY, '"family":"piper"', '"family":"other"'),
        _set_entry(FEEDS_KEY, "e", "f"),
        _drop_seal,
    ],
    ids=["weight", "contract", "feeds", "no seal"],
)
def test_check_seal_refuses_when_something_was_changed(change: Callable[[onnx.ModelProto], None]) -> None:
    with pytest.raises(Refusal, match=r"^m\.onnx: was changed after it was exported"):
        check_seal(_edited(change), "m.onnx")


def test_feeds_have_the_same_headers_whatever_the_python() -> None:
    # np.savez has zipfile write "version needed" 45 or 20, by the version of Python, and times where it has them.
    with zipfile.ZipFile(io.BytesIO(feeds_to_npz(FEEDS))) as archive:
        found = {(member.extract_version, member.date_time, member.compress_type) for member in archive.infolist()}
    assert found == {(20, (1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED)}
