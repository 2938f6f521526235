from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from contracts.contract import Cache, CodeStep, Contract, HostHalf, PassRecord, Source, TensorSpec
from contracts.errors import UserInput
from contracts.files import sha256_of_bytes
from contracts.verdicts import at_least
from converters.onnx_file import read_onnx
from rknn_tts import onnx_source as module
from rknn_tts.carried import carry, feeds_from_npz
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.onnx_source import open_source
from rknn_tts.request import Request
from rknn_tts.steps import Steps, open_steps
from tests.gates.small_graphs import row, scale_proto
from tests.rknn_tts.workshop import Heard

HOST = b"the host half"
PROVEN = (at_least("fp32.whole", 101.5, 95.0, "dB"),)
PASSES = (PassRecord("fold_with_onnxslim", 3, True, 130.0),)
FEEDS = ({"x": row(1, 2, 3, 4)},)
SOURCE = Source("voice.onnx", "ab" * 32, "checkpoint")


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    return open_steps(False, lambda text: pytest.fail(text))


def opened(path: Path, steps: Steps, **options: Any) -> OnnxSource:
    request = Request(command="compile", model=str(path), target="rk3588", **options)
    return open_source(path, request, "rk3588", steps, Heard())


def exported(folder: Path, host: bool = False, cuts_for: str | None = "rk3588") -> Path:
    contract = Contract(
        "piper",
        "decoder",
        SOURCE,
        (TensorSpec("x", (1, 4)),),
        (TensorSpec("y", (1, 4)),),
        passes=PASSES,
        verdicts=PROVEN,
        host=HostHalf("piper-host.onnx", sha256_of_bytes(HOST)) if host else None,
        cuts_for=cuts_for,
    )
    path = folder / "piper-decoder-w109.onnx"
    path.write_bytes(carry(scale_proto(2.0).SerializeToString(), contract, FEEDS))
    return path


def test_exported_onnx_brings_its_contract_proof_and_feeds(tmp_path: Path, steps: Steps) -> None:
    source = opened(exported(tmp_path), steps)
    assert source.stem == "piper-decoder-w109"
    assert (source.contract.family, source.contract.stage) == ("piper", "decoder")
    proof = source.prove()
    assert (proof.verdicts, proof.passes) == (PROVEN, PASSES)
    (feed,) = feeds_from_npz(source.feeds)
    np.testing.assert_array_equal(feed["x"], FEEDS[0]["x"])
    assert (source.host, source.notes) == (None, ())
    assert feeds_from_npz(source.originals) == ()


@pytest.mark.parametrize(("cuts_for", "says"), [(None, "no target in particular"), ("rk3566", "exported for rk3566")])
def test_exported_onnx_whose_cuts_are_another_target_s_says_so(
    tmp_path: Path, steps: Steps, cuts_for: str | None, says: str
) -> None:
    (note,) = opened(exported(tmp_path, cuts_for=cuts_for), steps).notes
    assert says in note
    assert "export --target rk3588" in note


def test_exported_onnx_reaches_the_toolkit_without_what_it_carries(tmp_path: Path, steps: Steps) -> None:
    graph = onnx.load(opened(exported(tmp_path), steps).graph)
    assert not graph.metadata_props
    assert graph.graph == scale_proto(2.0).graph


def test_exported_onnx_takes_the_host_half_beside_it(tmp_path: Path, steps: Steps) -> None:
    path = exported(tmp_path, host=True)
    (tmp_path / "piper-host.onnx").write_bytes(HOST)
    source = opened(path, steps)
    assert (source.host, source.notes) == (tmp_path / "piper-host.onnx", ())


@pytest.mark.parametrize(("beside", "says"), [(None, "is missing"), (b"another", "another one than")])
def test_exported_onnx_takes_no_other_host_half(tmp_path: Path, steps: Steps, beside: bytes | None, says: str) -> None:
    path = exported(tmp_path, host=True)
    if beside is not None:
        (tmp_path / "piper-host.onnx").write_bytes(beside)
    source = opened(path, steps)
    assert source.host is None
    (note,) = source.notes
    assert says in note
    assert "piper-host.onnx" in note


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"shape": ["x:1,4"]}, "--shape"),
        ({"inputs": "x.npz"}, "--inputs"),
        ({"no_pass": ["normalise_header"]}, "--no-pass"),
    ],
)
def test_exported_onnx_takes_no_option_that_would_make_another_graph_of_it(
    tmp_path: Path, steps: Steps, options: dict[str, Any], flag: str
) -> None:
    with pytest.raises(UserInput, match=rf"was written by export.* takes no {flag} for it"):
        opened(exported(tmp_path), steps, **options)


def test_exported_onnx_that_is_changed_while_it_is_read_is_refused_and_not_kept(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = exported(tmp_path)
    whole = path.read_bytes()

    def changing(asked: Path) -> ir.Model:
        model = read_onnx(asked)
        path.write_bytes(carry(scale_proto(3.0).SerializeToString(), Contract(None, None, SOURCE, (), ()), FEEDS))
        return model

    monkeypatch.setattr(module, "read_onnx", changing)
    with pytest.raises(UserInput, match="was changed while it was read"):
        opened(path, steps)
    monkeypatch.setattr(module, "read_onnx", read_onnx)
    path.write_bytes(whole)
    assert opened(path, steps).exported
    assert "bare" not in steps.reused


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}"])
def test_file_that_is_no_onnx_is_refused(tmp_path: Path, steps: Steps, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(UserInput, match=r"net\.onnx: is not an ONNX model"):
        opened(path, steps)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"inputs": (TensorSpec("x", (1, 5)),)},
            r"its input 'x' \[1, 5\] float32 is 'x' \[1, 4\] float32 in the graph",
        ),
        ({"inputs": ()}, r"its input missing is 'x' \[1, 4\] float32"),
        ({"outputs": (TensorSpec("y", (1, 4)), TensorSpec("z", (1,)))}, r"its output 'z' \[1\] float32 is missing"),
        ({"cache": Cache(4, ()), "step": CodeStep(4, 1, None, None, None, 0, 4)}, "its input 'cache' 0"),
    ],
)
def test_contract_that_contradicts_its_graph_is_refused(
    tmp_path: Path, steps: Steps, changes: dict[str, Any], says: str
) -> None:
    contract = Contract("piper", "decoder", SOURCE, (TensorSpec("x", (1, 4)),), (TensorSpec("y", (1, 4)),))
    path = tmp_path / "sealed.onnx"
    path.write_bytes(carry(scale_proto(2.0).SerializeToString(), dataclasses.replace(contract, **changes), FEEDS))
    with pytest.raises(UserInput, match=rf"^.*sealed\.onnx: carries .*{says}.*export it again"):
        opened(path, steps)


def test_exported_onnx_says_that_it_is_a_stand_in(tmp_path: Path, steps: Steps) -> None:
    source = Source("random", "ab" * 32, "random")
    contract = Contract("piper", "decoder", source, (TensorSpec("x", (1, 4)),), (TensorSpec("y", (1, 4)),))
    path = tmp_path / "x.onnx"
    path.write_bytes(carry(scale_proto(2.0).SerializeToString(), contract, FEEDS))
    assert "It was exported with seeded random weights: a stand-in, not a voice." in opened(path, steps).notes
