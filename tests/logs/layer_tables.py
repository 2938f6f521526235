"""Layer tables in the compiler's own form: rows of toolkit 2.3.2, among them what is special in any."""

from __future__ import annotations

_RULE = "-" * 170


def native(*lines: str) -> str:
    """`lines` as the native compiler prints them."""
    return "".join(f"D RKNN: [15:53:07.791] {line}\n" for line in lines)


RK3588 = native(
    _RULE,
    "                                                        Network Layer Information Table          ",
    _RULE,
    "ID   OpType             DataType Target InputShape                               OutputShape            "
    "Cycles(DDR/NPU/Total)    RW(KB)       FullName        ",
    _RULE,
    "0    InputOperator      FLOAT16  CPU    \\                                        (1,192,109)            "
    "0/0/0                    0            InputOperator:z ",
    "1    Reshape            FLOAT16  NPU    (1,192,109),(4)                          (1,192,1,109)          "
    "0/0/0                    40           Reshape:z_rs    ",
    "2    Slice              FLOAT16  CPU    (1,192,1,109),(1),(1),(1),(1)            (1,192,1,109)          "
    "0/0/0                    40           Slice:/flow/flows.7/Slice",
    "3    Conv               FLOAT16  NPU    (1,96,1,109),(192,96,1,1),(192)          (1,192,1,109)          "
    "4246/4032/4246           57           Conv:/flow/flows.6/pre/Conv",
    "4    Conv               FLOAT16  NPU    (1,192,1,109),(384,192,1,5),(384)        (1,384,1,109)          "
    "36543/80640/80640        762          Conv:/flow/flows.6/enc/in_layers.0/Conv",
    "5    Conv               FLOAT16  NPU    (1,3,7,20000),(3,3,1,1)                  (1,3,7,20000)          "
    "130213/280000/280000     820                          ",
    "6    ConvLeakyRelu      FLOAT16  NPU    (1,1200,1,64),(1,1200,1,1),...           (1,1200,1,64),...      "
    "0/0/0                    150          Conv:a name with : colon and  blanks",
    "7    OutputOperator     FLOAT16  CPU    (1,1,1,27904)                            \\                      "
    "0/0/0                    1744         OutputOperator:output",
    _RULE,
    "<<<<<<<< end: rknn::RKNNModelRegCmdbuildPass",
    "                                            Feature Tensor Information Table                           ",
    _RULE + "+---------------------------------",
    "ID  User           Tensor       DataType  DataFormat   OrigShape      NativeShape     |     [Start       End)"
    "       Size",
    _RULE + "+---------------------------------",
    "1   Reshape        z            FLOAT16   NC1HWC2      (1,192,1,109)  (1,98,1,109,8)  | 0x00000000 0x0000a800 "
    "0x0000a800",
    "2   Slice          a | name     FLOAT16   NC1HWC2      (1,192,1,109)  (1,98,1,109,8)  | 0x00b12000*0x00bed200 "
    "0x000db200",
    "7   OutputOperator audio        FLOAT16   NC1HWC2      (1,1,1,27904)  (1,4,1,27904,8) | 0x000da000 0x00147000 "
    "0x0006d000",
    _RULE + "+---------------------------------",
    "                                             Const Tensor Information Table                            ",
    _RULE + "+---------------------------------",
    "2   Conv           Pre_weightz  FLOAT16   (1,192,1,1)    | 0x010bbb40 0x010bbcc0 0x00000180",
    _RULE + "+---------------------------------",
    "----------------------------------------",
    "Total Internal Memory Size: 12212.5KB",
    "Total Weight Memory Size: 17129.8KB",
)

RK3576 = native(
    "Network Layer Information Table",
    _RULE,
    "ID   OpType             DataType Target InputShape                               OutputShape            "
    "Cycles(DDR/NPU/Total)    SparseRatio  RW(KB)       FullName        ",
    _RULE,
    "0    InputOperator      FLOAT16  CPU    \\                                        (1,64,1200)            "
    "0/0/0                                 0            InputOperator:x ",
    "1    Conv               FLOAT16  NPU    (1,64,1,1200),(64,64,1,3)                (1,64,1,1200)          "
    "44445/28800/44445        0%           174          Conv:c",
    "2    Sin                FLOAT16  CPU    (1,64,1,1200)                            (1,64,1,1200)          "
    "0/0/0                                 150          Sin:50% of it   ",
    _RULE,
    "Feature Tensor Information Table",
    "1   Conv           x            FLOAT16   NC1HWC2      (1,64,1,1200)  (1,8,1,1200,8)  | 0x00000000*0x000d0180 "
    "0x000d0180",
    "Const Tensor Information Table",
    "Total Internal Memory Size: 832.375KB",
    "Total Weight Memory Size: 75.0625KB",
)
