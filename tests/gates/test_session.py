"""Running graphs: what comes out, what is refused, and in which words."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import TensorProto, helper

import gates.session
from contracts.errors import Refusal, ToolFailure, UserInput
from gates.session import Session
from tests.gates.small_graphs import constant, proto, row, scale_proto, tensor

X = row(1, 2, 3, 4)


def in_form(form: str, folder: Path) -> Any:
    made = scale_proto(3.0)
    if form == "path":
        onnx.save(made, folder / "m.onnx")
        return folder / "m.onnx"
    return {"proto": made, "bytes": made.SerializeToString(), "ir": ir.from_proto(made)}[form]


@pytest.mark.parametrize("form", ["path", "proto", "bytes", "ir"])
def test_session_runs_every_form_when_given_a_graph(form: str, tmp_path: Path) -> None:
    outputs = Session(in_form(form, tmp_path)).run({"x": X})
    assert list(outputs) == ["y"]
    np.testing.assert_array_equal(outputs["y"], row(3, 6, 9, 12))


def test_session_takes_external_data_when_given_a_loaded_ir_model(tmp_path: Path) -> None:
    onnx.save(scale_proto(3.0), tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    loaded = ir.load(tmp_path / "m.onnx")
    np.testing.assert_array_equal(Session(loaded).run({"x": X})["y"], row(3, 6, 9, 12))
    assert isinstance(loaded.graph.initializers["k"].const_value, ir.ExternalTensor)


def test_session_takes_external_data_that_somebody_looks_at(tmp_path: Path) -> None:
    onnx.save(scale_proto(3.0), tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    loaded = ir.load(tmp_path / "m.onnx")
    held = loaded.graph.initializers["k"].const_value
    assert held is not None
    looked_at = held.numpy()
    np.testing.assert_array_equal(Session(loaded).run({"x": X})["y"], row(3, 6, 9, 12))
    assert looked_at.ravel().tolist() == [3.0]


def lending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have weights of every size lent."""
    monkeypatch.setattr(gates.session, "SHARED_BYTES", 0)
    monkeypatch.setattr(gates.session, "_LENT_BYTES", 0)


def test_session_reads_lent_weights_as_long_as_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    lending(monkeypatch)
    generator = np.random.default_rng(0)
    weights = generator.standard_normal((256, 256), np.float32)
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["row"]),
        helper.make_node("MatMul", ["row", "w"], ["y"]),
        helper.make_node("Identity", ["w"], ["z"]),
    ]
    made = proto(nodes, [tensor("x", [256])], [tensor("y", [1, 256]), tensor("z", [256, 256])], [
        constant("w", weights), constant("shape", [1, 256], np.int64),
    ])  # fmt: skip
    model = ir.from_proto(made)
    session = Session(model)
    tensor_kept = model.graph.initializers["w"].const_value
    assert isinstance(tensor_kept, ir.TensorProtoTensor)  # the model itself is left as it is
    del model, made, tensor_kept
    gc.collect()
    x = generator.standard_normal(256).astype(np.float32)
    outputs = session.run({"x": x})
    np.testing.assert_allclose(outputs["y"][0], x @ weights, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(outputs["z"], weights)


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_session_reads_lent_weights_in_the_file_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int
) -> None:
    lending(monkeypatch)
    weights = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32)
    (tmp_path / "weights").write_bytes(bytes(shift) + weights.tobytes())
    model = ir.from_proto(
        proto([helper.make_node("Mul", ["x", "k"], ["y"])], [tensor("x", [1, 4])], [tensor("y", [1, 4])], [])
    )
    kept = ir.ExternalTensor(
        "weights", shift, weights.nbytes, ir.DataType.FLOAT, shape=ir.Shape([1, 4]), name="k", base_dir=tmp_path
    )
    (k,) = (value for value in next(iter(model.graph)).inputs if value is not None and value.name == "k")
    k.const_value = kept
    model.graph.initializers.add(k)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", None)  # nothing is written
    np.testing.assert_array_equal(Session(model).run({"x": X})["y"], X * weights)
    assert k.const_value is kept


@pytest.mark.parametrize("op", ["MatMul", "Add"])
def test_session_computes_with_the_very_weights_when_they_are_large(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    lending(monkeypatch)
    monkeypatch.setattr(gates.session, "UNCOPIED_BYTES", 0)
    weights = np.eye(4, dtype=np.float32)
    made = proto([helper.make_node(op, ["x", "k"], ["y"])], [tensor("x", [1, 4])], [tensor("y", ["n", 4])], [
        constant("k", weights),
    ])  # fmt: skip
    model = ir.from_proto(made)
    model.graph.initializers["k"].const_value = ir.Tensor(weights, name="k")
    session = Session(model)
    before = session.run({"x": X})["y"]
    weights *= 3
    after = session.run({"x": X})["y"]
    np.testing.assert_array_equal(before, X @ np.eye(4) if op == "MatMul" else X + np.eye(4))
    np.testing.assert_array_equal(after, X @ weights if op == "MatMul" else X + weights)


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int64])
def test_session_does_not_lend_weights_of_other_types(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    lending(monkeypatch)
    nodes = [helper.make_node("Cast", ["k"], ["wide"], to=1), helper.make_node("Mul", ["x", "wide"], ["y"])]
    model = ir.from_proto(proto(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], [constant("k", [3.0], kind)]))
    assert gates.session._without_large_weights(model)[1] == {}
    np.testing.assert_array_equal(Session(model).run({"x": X})["y"], row(3, 6, 9, 12))


def test_session_goes_through_a_file_when_weights_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates.session, "IN_MEMORY_BYTES", 0)
    model = ir.from_proto(scale_proto(3.0))
    np.testing.assert_array_equal(Session(model).run({"x": X})["y"], row(3, 6, 9, 12))


def test_session_runs_again_equal_when_reused() -> None:
    session = Session(scale_proto(1 / 3))
    first = session.run({"x": X})
    np.testing.assert_array_equal(first["y"], session.run({"x": X})["y"])
    assert (session.inputs, session.outputs) == (("x",), ("y",))


def test_session_optimises_and_takes_the_threads_it_is_given_when_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[onnxruntime.SessionOptions] = []
    load = gates.session._load

    def watched(model: Any, options: onnxruntime.SessionOptions) -> Any:
        taken.append(options)
        return load(model, options)

    monkeypatch.setattr(gates.session, "_load", watched)
    np.testing.assert_array_equal(Session(scale_proto(3.0), fast_on=3).run({"x": X})["y"], row(3, 6, 9, 12))
    Session(scale_proto(3.0))
    levels = onnxruntime.GraphOptimizationLevel
    assert [options.graph_optimization_level for options in taken] == [levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL]
    assert [options.intra_op_num_threads for options in taken] == [3, gates.session.THREADS]


@pytest.mark.parametrize(
    ("feeds", "says"),
    [
        ({}, "the input 'x' is missing; its inputs are x."),
        ({"x": X, "q": X}, "there is no input 'q'; its inputs are x."),
        ({"x": X.astype(np.float64)}, "the input 'x' needs float32 values, not float64."),
        ({"x": X.astype(np.int64)}, "the input 'x' needs float32 values, not int64."),
        ({"x": X[0]}, "the input 'x' needs the shape [1, 4], not [4]."),
        ({"x": row(1, 2)}, "the input 'x' needs the shape [1, 4], not [1, 2]."),
    ],
)
def test_session_refuses_feeds_when_they_do_not_fit(feeds: dict[str, Any], says: str) -> None:
    with pytest.raises(UserInput) as caught:
        Session(scale_proto(1.0)).run(feeds)
    assert says in str(caught.value)


def test_session_takes_any_length_when_an_axis_is_symbolic() -> None:
    made = proto([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [1, "T"])], [tensor("y", [1, "T"])])
    session = Session(made)
    assert [session.run({"x": np.ones((1, n), np.float32)})["y"].shape for n in (2, 5)] == [(1, 2), (1, 5)]
    with pytest.raises(UserInput, match=r"needs the shape \[1, 'T'\], not \[2, 5\]"):
        session.run({"x": np.ones((2, 5), np.float32)})


def test_session_refuses_in_one_sentence_when_graph_does_not_load(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"not a graph")
    unknown = proto([helper.make_node("Blorp", ["x"], ["y"])], [tensor("x", [1])], [tensor("y", [1])])
    late = scale_proto(1.0)
    late.ir_version = 99
    models: list[tuple[Any, str]] = [
        (path, "broken.onnx"), (tmp_path / "absent.onnx", "absent.onnx"), (unknown, "Blorp"), (late, "IR version")
    ]  # fmt: skip
    for model, named in models:
        with pytest.raises(Refusal) as caught:
            Session(model)
        text = str(caught.value)
        assert named in text
        assert "onnxruntime cannot load it" in text
        assert "\n" not in text
        assert "onnxruntime_src" not in text
        assert "[ONNXRuntimeError]" not in text


DOUBLE, INT8 = TensorProto.DOUBLE, TensorProto.INT8


@pytest.mark.parametrize(
    ("made", "operator"),
    [
        (
            proto(
                [helper.make_node("Conv", ["x", "x"], ["y"])],
                [tensor("x", [1, 1, 4], DOUBLE)],
                [tensor("y", [1, 1, 1], DOUBLE)],
            ),
            "Conv(11)",
        ),
        (
            proto(
                [helper.make_node("MatMul", ["x", "x"], ["y"])],
                [tensor("x", [4, 4], TensorProto.BFLOAT16)],
                [tensor("y", [4, 4], TensorProto.BFLOAT16)],
            ),
            "MatMul(13)",
        ),
        (
            proto(
                [helper.make_node("ConvInteger", ["x", "x"], ["y"])],
                [tensor("x", [1, 1, 4], INT8)],
                [tensor("y", [1, 1, 1], TensorProto.INT32)],
            ),
            "ConvInteger(10)",
        ),
    ],
)  # fmt: skip
def test_session_says_what_to_do_when_onnxruntime_has_no_kernel_for_a_type(
    made: onnx.ModelProto, operator: str
) -> None:
    with pytest.raises(Refusal) as caught:
        Session(made)
    text = str(caught.value)
    assert f"Could not find an implementation for {operator} node" in text
    assert text.endswith("export the model in float32, and with opset 19 or below.")


def resized(mode: str, scales: list[float]) -> onnx.ModelProto:
    shape = [2] * len(scales)
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], "resize", mode=mode)
    return proto([node], [tensor("x", shape)], [tensor("y", ["n"] * len(shape))], [constant("s", scales)])


@pytest.mark.parametrize(
    ("made", "feed", "says"),
    [
        (  # a file's name and a function's, then a list over several lines
            resized("cubic", [1, 1, 2]),
            None,
            "initialization: 'Cubic' mode only supports: 2-D inputs ('Bicubic') or 4-D inputs with",
        ),
        (resized("linear", [1, 2, 2, 2, 2]), None, "'Linear' mode only supports: 2-D inputs or 3-D inputs ("),
        (  # a path and a signature with arguments
            proto(
                [helper.make_node("Reshape", ["x", "s"], ["y"])],
                [tensor("x", ["n", 4])],
                [tensor("y", [3, "k"])],
                [constant("s", [3, 5], np.int64)],
            ),
            X,
            "Message: input_shape_size == size was false. The input tensor cannot be reshaped",
        ),
        (
            proto(
                [helper.make_node("MatMul", ["x", "w"], ["y"])],
                [tensor("x", [1, "n"])],
                [tensor("y", [1, "k"])],
                [constant("w", np.ones((3, 1)))],
            ),
            X,
            "Status Message: MatMul dimension mismatch.",
        ),
    ],
)
def test_session_leaves_places_in_the_source_out_and_nothing_else(made: onnx.ModelProto, feed: Any, says: str) -> None:
    with pytest.raises((Refusal, ToolFailure)) as caught:
        Session(made).run({} if feed is None else {"x": feed})
    text = str(caught.value)
    assert says in text
    assert ".h:" not in text
    assert "\n" not in text
    assert "[ONNXRuntimeError]" not in text


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("/a/b.cc:7 void ns::F(int, std::function<void(int)>)::<lambda(long)> [with T = float] x > 0 was false. Bad.",
         "x > 0 was false. Bad."),
        ("/a/b.h:7 ns::Class::Class(const ns::Info&) const: No (really) good.", "No (really) good."),
        ("b.cc:7 operator() the size (3) is wrong", "the size (3) is wrong."),
        ("b.h:453 Validation only (a) or\n (b)", "only (a) or."),
        ("see model.hpp:12 it's (not) a place", "see model.hpp:12 it's (not) a place."),
        ("", "RuntimeError."),
        ("ends with a colon:", "ends with a colon:."),
    ],
)  # fmt: skip
def test_sentence_is_what_an_error_says_besides_its_place(message: str, sentence: str) -> None:
    assert gates.session._sentence(RuntimeError(message)) == sentence


def test_session_refuses_when_external_weights_are_missing(tmp_path: Path) -> None:
    onnx.save(scale_proto(3.0), tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    loaded = ir.load(tmp_path / "m.onnx")
    (tmp_path / "w.data").unlink()
    for model in (loaded, tmp_path / "m.onnx"):
        with pytest.raises(Refusal, match=r"w\.data"):
            Session(model)


def test_session_fails_in_one_sentence_when_running_breaks() -> None:
    made = proto(
        [helper.make_node("Gather", ["k", "x"], ["y"], "look_up")],
        [tensor("x", [1], TensorProto.INT64)],
        [tensor("y", [1])],
        [constant("k", [1.0, 2.0])],
    )
    with pytest.raises(ToolFailure) as caught:
        Session(made).run({"x": np.array([7], np.int64)})
    text = str(caught.value)
    assert "look_up" in text
    assert "\n" not in text
    assert "onnxruntime_src" not in text


def test_session_prints_nothing_when_it_loads_runs_and_fails(pytestconfig: pytest.Config) -> None:
    program = (
        "import numpy as np\n"
        "from gates.session import Session\n"
        "from contracts.errors import RknnTtsError\n"
        "from tests.gates.small_graphs import scale_proto\n"
        "session = Session(scale_proto(2.0))\n"
        "session.run({'x': np.ones((1, 4), np.float32)})\n"
        "try:\n"
        "    Session(b'broken')\n"
        "except RknnTtsError:\n"
        "    pass\n"
    )
    root = pytestconfig.rootpath
    paths = {"PYTHONPATH": f"{root}:{root / 'runtime'}"}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=paths, check=True)
    assert result.stdout + result.stderr == ""
