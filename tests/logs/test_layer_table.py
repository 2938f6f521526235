"""The compiler's layer table."""

from __future__ import annotations

import pytest

from logs.layer_table import LayerTable, parse_layer_table
from logs.lines import clean_lines
from tests.logs.layer_tables import RK3576, RK3588, native


def parse(text: str) -> LayerTable | None:
    return parse_layer_table(clean_lines(text))


def some(text: str) -> LayerTable:
    table = parse(text)
    assert table is not None
    return table


def test_parse_layer_table_reads_every_row_and_the_totals() -> None:
    table = some(RK3588)
    assert [layer.id for layer in table.layers] == list(range(8))
    assert (table.internal_kb, table.weight_kb, table.unread) == (12212.5, 17129.8, ())
    # Sums by hand: 4246 + 80640 + 280000; 0 + 40 + 40 + 57 + 762 + 820 + 150 + 1744.
    assert sum(layer.cycles for layer in table.layers) == 364_886
    assert sum(layer.rw_kb for layer in table.layers) == 3613
    conv = table.layers[4]
    assert (conv.op, conv.dtype, conv.target) == ("Conv", "FLOAT16", "NPU")
    assert (conv.inputs, conv.outputs) == ("(1,192,1,109),(384,192,1,5),(384)", "(1,384,1,109)")
    assert (conv.cycles_ddr, conv.cycles_npu, conv.cycles, conv.rw_kb) == (36543, 80640, 80640, 762)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "InputOperator:z"),
        (2, "Slice:/flow/flows.7/Slice"),
        (5, ""),
        (6, "Conv:a name with : colon and  blanks"),
        (7, "OutputOperator:output"),
    ],
)
def test_parse_layer_table_takes_names_as_they_are(number: int, name: str) -> None:
    assert some(RK3588).layers[number].name == name


def test_parse_layer_table_skips_the_sparse_ratio_when_the_target_has_one() -> None:
    layers = some(RK3576).layers
    assert [(layer.cycles, layer.rw_kb, layer.name) for layer in layers] == [
        (0, 0, "InputOperator:x"),
        (44445, 174, "Conv:c"),
        (0, 150, "Sin:50% of it"),
    ]


def test_parse_layer_table_takes_the_last_when_there_are_several() -> None:
    table = some(RK3588 + RK3576)
    assert len(table.layers) == 3
    assert (table.internal_kb, table.weight_kb) == (832.375, 75.0625)


def test_parse_layer_table_finds_where_the_last_feature_ends() -> None:
    # 12212.5 KB, as the total behind it says; what is constant has addresses of its own.
    assert some(RK3588).arena_bytes == 0xBED200 == 12212.5 * 1024
    assert some(RK3588 + RK3576).arena_bytes == 832.375 * 1024


def test_parse_layer_table_finds_the_end_beyond_32_bits() -> None:
    # As 2.3.2 and 2.5.0 print ten tensors of 1 GB: starts have 32 bits, ends have more.
    row = "7  Sigmoid  y4  FLOAT16 NC1HWC2 (1,1,8000,4000) (1,8,8000,4000,8) | {}"
    log = RK3588.replace("0x00b12000*0x00bed200 0x000db200", "0xf9e69c00*0x136ef9c00 0x3d090000")
    assert some(log).arena_bytes == 0x136EF9C00
    cut = native("Feature Tensor Information Table", row.format("0xf9e69c00*0x36ef9c00 0x3d090000"))
    assert some(RK3588 + cut).arena_bytes == 0x136EF9C00


def test_parse_layer_table_knows_of_no_end_when_the_log_tells_none() -> None:
    head, _, rest = RK3588.partition("Feature Tensor Information Table")
    assert some(head + rest).arena_bytes is None
    assert some(RK3588 + head).arena_bytes is None


def test_parse_layer_table_takes_no_totals_of_an_earlier_build() -> None:
    table = some(RK3588 + RK3576.split("Total Internal")[0])
    assert (table.internal_kb, table.weight_kb) == (None, None)


def test_parse_layer_table_is_empty_when_there_are_no_rows() -> None:
    head = native("Network Layer Information Table", "-" * 170, "ID   OpType   DataType Target InputShape", "-" * 170)
    assert some(head + native("-" * 170, "Total Weight Memory Size: 0KB")) == LayerTable((), None, 0.0)


@pytest.mark.parametrize(
    "log",
    [
        "",
        "I rknn building done.\n",
        native("Subgraph Op Layer Information Table", "ID OpType DataType Target", "0 Conv FLOAT16 NPU a b 1/2/2 3 c"),
        native("Total Internal Memory Size: 1KB"),
    ],
)
def test_parse_layer_table_is_none_when_there_is_no_table(log: str) -> None:
    assert parse(log) is None


def test_parse_layer_table_reads_on_when_other_lines_come_between() -> None:
    assert some(RK3588.replace("\n", "\nE RKNN: [1:0:0.0] Unkown op target: 0\n")) == some(RK3588)


@pytest.mark.parametrize(("printed", "kb"), [("1.125e+06KB", 1_125_000.0), ("2e+06KB", 2_000_000.0), ("1e-05KB", 1e-5)])
def test_parse_layer_table_reads_a_total_when_the_compiler_prints_a_power_of_ten(printed: str, kb: float) -> None:
    table = some(RK3588.replace("17129.8KB", printed).replace("12212.5KB", printed))
    assert (table.internal_kb, table.weight_kb) == (kb, kb)


def test_parse_layer_table_keeps_a_row_it_cannot_read() -> None:
    row = "2    Slice              FLOAT16  CPU    (1,192,1,109)"
    table = some(RK3588.replace("2    Slice ", f"{row}\nD RKNN: [15:53:07.791] 2    Slice "))
    assert table.unread == (row,)
    assert len(table.layers) == 8


def test_parse_layer_table_ignores_the_tensor_tables_after_it() -> None:
    tensor = "2   Reshape        z      FLOAT16   UNDEFINED    (1,192,109)    (1,192,109)     | 0x0 0xa800 0xa800"
    assert some(RK3588 + native("Feature Tensor Information Table", "-" * 150 + "+---", tensor)) == some(RK3588)


@pytest.mark.parametrize(
    ("text", "kb"),
    [("12212.5KB", 12212.5), ("12.5MB", 12800.0), ("1GB", 1048576.0), ("512B", 0.5), ("7", 7.0), ("3 KB", 3.0)],
)
def test_parse_layer_table_converts_sizes_to_kb(text: str, kb: float) -> None:
    table = some(RK3588.replace("12212.5KB", text).replace(" 762 ", f" {text} "))
    assert table.internal_kb == kb
    assert table.layers[4].rw_kb == kb
