from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import pytest

from contracts.errors import Refusal, UserInput
from rknn_tts.shapes import agreed, parse_shapes, resolve_shapes


def value(name: str, sizes: Sequence[int | str | None] | None) -> ir.Value:
    return ir.val(name, ir.DataType.FLOAT, None if sizes is None else ir.Shape(list(sizes)))


TOKENS = value("tokens", ["N", "T"])


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ([], {}),
        (["x:1,192,93"], {"x": (1, 192, 93)}),
        (["x:7"], {"x": (7,)}),
        (["serving_default:0:1,4", "y:2"], {"serving_default:0": (1, 4), "y": (2,)}),
        (["x:1,4", "x:1,4"], {"x": (1, 4)}),
        (["a\nb:1,4"], {"a\nb": (1, 4)}),
    ],
)
def test_parse_shapes_reads_names_and_sizes(texts: list[str], wanted: dict[str, tuple[int, ...]]) -> None:
    assert parse_shapes(texts) == wanted


@pytest.mark.parametrize(
    "text",
    ["x", "x:", ":1,2", "x:1,,2", "x:1, 2", "x:-1", "x:0", "x:1.5", "x:1x2", "x:N", f"x:{2**31}", "x:" + "9" * 99],
)
def test_parse_shapes_refuses_what_is_no_shape(text: str) -> None:
    with pytest.raises(UserInput, match=r"--shape .* whole numbers above 0"):
        parse_shapes([text])


def test_parse_shapes_refuses_two_shapes_of_one_input() -> None:
    with pytest.raises(UserInput, match="the input x two shapes"):
        parse_shapes(["x:1,4", "x:1,5"])


def test_agreed_takes_arrays_where_no_shape_is_given() -> None:
    assert agreed({"x": (1, 4)}, {"x": (1, 4), "y": (2,)}) == {"x": (1, 4), "y": (2,)}


def test_agreed_refuses_a_shape_that_is_not_its_arrays() -> None:
    with pytest.raises(UserInput, match=r"--shape x:1,4: its array in --inputs has the shape \[1, 5\]"):
        agreed({"x": (1, 4)}, {"x": (1, 5)})


@pytest.mark.parametrize(
    ("inputs", "given", "wanted"),
    [
        ([value("x", [1, 4])], {}, {"x": (1, 4)}),
        ([value("x", [])], {}, {"x": ()}),
        ([value("x", [1, 4])], {"x": (1, 4)}, {"x": (1, 4)}),
        ([TOKENS], {"tokens": (1, 64)}, {"tokens": (1, 64)}),
        ([TOKENS, value("mask", ["N", 1, "T"])], {"tokens": (2, 64)}, {"tokens": (2, 64), "mask": (2, 1, 64)}),
        ([value("mask", ["T"]), TOKENS], {"tokens": (2, 64)}, {"mask": (64,), "tokens": (2, 64)}),
        ([value("x", None)], {"x": (3, 3)}, {"x": (3, 3)}),
        ([value("x", [None, 4])], {"x": (3, 4)}, {"x": (3, 4)}),
    ],
)
def test_resolve_shapes_fills_symbolic_sizes_wherever_they_stand(
    inputs: list[ir.Value], given: dict[str, tuple[int, ...]], wanted: dict[str, tuple[int, ...]]
) -> None:
    assert resolve_shapes(inputs, given, "net.onnx") == wanted


@pytest.mark.parametrize(
    ("inputs", "given", "says"),
    [
        ([TOKENS], {}, "the input tokens is [N, T], and an engine has fixed sizes: give them with numbers for N and T"),
        ([TOKENS], {}, "--shape tokens:N,T"),
        (
            [value("input", ["batch_size", "phonemes"])],
            {},
            "net.onnx: the input 'input' is [batch_size, phonemes], and",
        ),
        ([value("input", ["batch_size", "phonemes"])], {}, "--shape input:batch_size,phonemes"),
        ([value("the words", None)], {}, "the input 'the words' has no shape"),
        ([value("x", None)], {}, "the input x has no shape"),
        ([value("x", [None, 4])], {}, "the input x is [?, 4]"),
        ([TOKENS, value("x", ["S"])], {"tokens": (1, 2)}, "the input x is [S]"),
    ],
)
def test_resolve_shapes_names_input_and_sizes_when_they_are_missing(
    inputs: list[ir.Value], given: dict[str, tuple[int, ...]], says: str
) -> None:
    with pytest.raises(Refusal) as caught:
        resolve_shapes(inputs, given, "net.onnx")
    assert says in str(caught.value)
    assert str(caught.value).startswith("net.onnx: ")


@pytest.mark.parametrize(
    ("inputs", "given", "says"),
    [
        ([value("x", [1, 4])], {"x": (1, 5)}, "the input x is [1, 4]: 5 is not 4"),
        ([value("x", [1, "T"])], {"x": (1, 5, 6)}, "the input x is [1, T]: 2 sizes are needed"),
        ([value("x", ["T", "T"])], {"x": (4, 5)}, "T is 5 here and 4 elsewhere"),
        ([value("x", ["T"]), value("y", ["T"])], {"x": (4,), "y": (5,)}, "T is 5 here and 4 elsewhere"),
        ([TOKENS], {"token": (1, 64)}, "net.onnx has no input token. Did you mean tokens?"),
        ([TOKENS], {"zzz": (1, 64)}, "has no input zzz. Its inputs are tokens."),
    ],
)
def test_resolve_shapes_refuses_what_the_file_contradicts(
    inputs: list[ir.Value], given: dict[str, tuple[int, ...]], says: str
) -> None:
    with pytest.raises(UserInput) as caught:
        resolve_shapes(inputs, given, "net.onnx")
    assert says in str(caught.value)


def test_resolve_shapes_refuses_an_input_that_is_no_tensor() -> None:
    sequence = ir.Value(name="items", type=ir.SequenceType(ir.TensorType(ir.DataType.FLOAT)))
    with pytest.raises(Refusal, match=r"the input items is of the kind sequence; the NPU takes tensors only"):
        resolve_shapes([sequence], {}, "net.onnx")
