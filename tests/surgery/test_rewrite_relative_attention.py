"""The rewrite against the formula of VITS's relative attention in double precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import pytest

from contracts.verdicts import Status
from gates.graphs import with_shapes
from gates.relative_shifts import relative_shifts
from surgery.declaration import EXACT_PARITY_DB
from surgery.rewrite_relative_attention import Form, rewrite_relative_attention
from tests.gates.small_graphs import model, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.one_operator import equal_after, feed_of, left_alone, operators
from tests.surgery.relative_graphs import Attention, Nodes, attention, formula, shifted_to_positions

FORMS: tuple[Form, ...] = ("banded", "gather")
MOVES = {"Pad", "Concat", "Slice"}


def checked(of: Attention, form: Form) -> ir.Model:
    """The rewritten graph: both chains gone, and equal to the original and to the formula."""
    original = attention(of)
    made = equal_after(rewrite_relative_attention(form), original, hits=2)
    feed = feed_of(original)
    assert snr_db(formula(of, **feed), run(made, feed)["y"]) >= EXACT_PARITY_DB
    assert not MOVES & set(operators(made))
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("window", [2, 4])
@pytest.mark.parametrize("positions", [1, 3, 4, 5, 16])
def test_attention_is_that_of_the_formula(positions: int, window: int, form: Form) -> None:
    checked(Attention(positions=positions, window=window), form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize(
    "of",
    [
        Attention(heads=3, positions=9, window=2, own_embeddings=True, prefix="renamed/"),
        Attention(heads=2, positions=6, window=2, depth=6),  # as many positions as numbers in a head
        Attention(positions=7, spelling="concat"),
        Attention(positions=7, spelling="between", window=2),
        Attention(heads=1, positions=11, window=0),
    ],
)
def test_attention_is_found_when_it_is_spelled_otherwise(of: Attention, opset: int, form: Form) -> None:
    checked(Attention(**{**vars(of), "opset": opset}), form)


def test_attention_is_found_when_the_graph_is_written_for_an_older_opset() -> None:
    checked(Attention(spelling="pad", opset=11), "gather")


@pytest.mark.parametrize("positions", [3, 16])
def test_banded_is_a_few_products_when_few_distances_count(positions: int) -> None:
    made = checked(Attention(positions=positions, window=1), "banded")
    added = [node for node in made.graph if "rewrite_relative_attention" in (node.name or "")]
    computing = sorted(node.op_type for node in added if node.op_type not in {"Reshape", "Transpose"})
    assert computing == ["Conv"] * 4 + ["Mul"] * 4
    largest = max(value.const_value.size for value in made.graph.initializers.values() if value.const_value)
    assert largest == max(positions**2, 9 * positions, 9 * Attention.depth)  # masks of rows and of the band; weights


def test_banded_has_no_mask_of_the_band_when_every_distance_counts() -> None:
    made = checked(Attention(positions=3, window=2), "banded")
    added = [node.op_type for node in made.graph if "rewrite_relative_attention" in (node.name or "")]
    assert added.count("Mul") == 2


def test_band_is_read_from_the_weights_when_it_is_on_one_side() -> None:
    of = Attention(positions=8, window=2)
    original = attention(of)
    for value in original.graph.initializers.values():
        if value.name and value.name.startswith(("keys", "values")):
            assert value.const_value is not None
            array = value.const_value.numpy().copy()
            distances = array if array.shape[-2] == of.widest else array.swapaxes(-1, -2)
            distances[..., of.positions :, :] = 0  # a look back only
            value.const_value = ir.tensor(array, name=value.name)
    made = equal_after(rewrite_relative_attention(), original, hits=2)
    # Two distances back and none: three of them, three residues.
    assert (1, 9, 1, 8) in [tuple(value.shape.numpy()) for value in made.graph.initializers.values() if value.shape]


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_left_for_the_gate(form: Form) -> None:
    original = attention(Attention())
    assert relative_shifts(with_shapes(original)).status is Status.FAILED
    made = rewrite_relative_attention(form).rewrite(original).model
    assert relative_shifts(with_shapes(made)).status is Status.PASSED


def test_graph_is_left_alone_when_the_slice_is_one_column_off() -> None:
    of, made = Attention(positions=5), Nodes()
    flat = made.add("Pad", "x", made.whole("pads", [0, 0, 0, 0, 0, 0, 0, 1]))
    flat = made.add("Reshape", flat, made.whole("flat", [1, 2, 50]))
    flat = made.add("Pad", flat, made.whole("pads", [0, 0, 0, 0, 0, 4]))
    rows = made.add("Reshape", flat, made.whole("rows", [1, 2, 6, 9]))
    made.add("Slice", rows, *(made.whole("at", at) for at in ([0, 3], [5, 8], [2, 3])), gives="y")
    given, out = tensor("x", (1, 2, 5, of.widest)), tensor("y", (1, 2, 5, 5))
    left_alone(rewrite_relative_attention(), model(made.nodes, [given], [out], made.weights))


@pytest.mark.parametrize("size", ["n", 2])
def test_graph_is_left_alone_when_sizes_are_open_or_nothing_is_shifted(size: str | int) -> None:
    of, made = Attention(positions=3), Nodes()
    shifted_to_positions(made, "x", of)
    made.nodes[-1].output[0] = "y"
    original = model(made.nodes, [tensor("x", (1, size, 3, 5))], [tensor("y", ("a", "b", "c", "d"))], made.weights)
    if size == "n":
        left_alone(rewrite_relative_attention(), original)
    else:  # an input: what is shifted is no product, which is refused
        assert rewrite_relative_attention().rewrite(original).refused


def test_weights_are_shared_with_the_original_when_it_is_rewritten() -> None:
    original = attention(Attention())
    feed = feed_of(original)
    wanted = run(original, feed)["y"]
    rewrite_relative_attention().rewrite(original)
    np.testing.assert_array_equal(run(original, feed)["y"], wanted)


@dataclass(frozen=True)
class Neighbour:
    """A chain like VITS's, each step of which may be off: 5 rows of 9 logits to as many rows of 5.

    Attributes:
        column: what is padded: the last column, or the first.
        ahead, behind: of zeros with which the rows in one are padded.
        columns: of the rows that these become.
        cut: where these are cut: first row, first column.
    """

    column: tuple[int, int]
    ahead: int
    behind: int
    columns: int
    cut: tuple[int, int]

    @property
    def is_shift(self) -> bool:
        """Whether y[i, j] = x[i, 4 + j - i], element by element."""
        x = np.arange(1, 46).reshape(5, 9)
        flat = np.pad(np.pad(x, [(0, 0), self.column]).ravel(), (self.ahead, self.behind))
        i, j = np.ogrid[:5, :5]
        (row, column), rows = self.cut, flat.reshape(-1, self.columns)
        return np.array_equal(rows[row : row + 5, column : column + 5], x[i, 4 + j - i])

    def graph(self) -> ir.Model:
        """The product with embeddings, and the chain."""
        of, made = Attention(positions=5), Nodes()
        value = made.add("MatMul", "q", made.number("keys", of.used(of.table(1))[None].swapaxes(-1, -2)))
        value = made.add("Pad", value, made.whole("pads", [0, 0, 0, self.column[0], 0, 0, 0, self.column[1]]))
        value = made.add("Reshape", value, made.whole("flat", [1, 2, 50]))
        value = made.add("Pad", value, made.whole("pads", [0, 0, self.ahead, 0, 0, self.behind]))
        value = made.add("Reshape", value, made.whole("rows", [1, 2, -1, self.columns]))
        ends = [start + 5 for start in self.cut]
        made.add("Slice", value, *(made.whole("at", at) for at in (list(self.cut), ends, [2, 3])), gives="y")
        return model(made.nodes, [tensor("q", of.shape)], [tensor("y", (1, 2, 5, 5))], made.weights)


NEIGHBOURS = [
    Neighbour(column, ahead, (50 + ahead) * -1 % columns, columns, (row, start))
    for column in ((0, 1), (1, 0))
    for ahead in (0, 5)
    for columns in (9, 10, 11)
    for row in (0, 1)
    for start in (0, 3, 4)
    if (50 + ahead + (50 + ahead) * -1 % columns) // columns >= row + 5
]


@pytest.mark.parametrize("near", NEIGHBOURS, ids=repr)
def test_chain_is_rewritten_only_where_each_number_is_the_shifts(near: Neighbour) -> None:
    if near.is_shift:
        equal_after(rewrite_relative_attention(), near.graph())
    else:
        left_alone(rewrite_relative_attention(), near.graph())


def test_neighbours_hold_shifts_spelled_otherwise_and_no_shifts() -> None:
    assert {near.is_shift for near in NEIGHBOURS} == {True, False}
    assert sum(near.is_shift for near in NEIGHBOURS) > 1
