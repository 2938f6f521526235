"""The real toolkit on Qwen3's seam `codes`: every code's entry is found, and the CPU has but the integers to cast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from cost.model import on_cpu
from engine.environment import converter_python
from logs.layer_table import parse_layer_table
from logs.lines import clean_lines
from models.qwen3.config import TRUE_CONFIG
from models.qwen3.step_codes import OneHotTable
from models.tracing import traced
from surgery.fuse_affine_steps import fuse_affine_steps
from tests.engine.toolkit_runs import built
from tests.models.qwen3.originals import random_decoder
from tests.onnx_runs import snr_db
from tests.qwen3_configs import REDUCED

CODES = 64

SIMULATOR_DB = 60.0
"""Of each frame of codes: entries, weights and sums of fp16. One entry for another's leaves less than 30."""


def test_codes_are_looked_up_on_the_npu(tmp_path: Path) -> None:
    size = TRUE_CONFIG.codebook_size
    config = replace(REDUCED, codebook_size=size, num_quantizers=TRUE_CONFIG.num_quantizers)
    quantizer = random_decoder(config).quantizer
    codes = np.random.default_rng(3).integers(0, size, (1, config.num_quantizers, CODES))
    codes[0, :, :4] = 0, 1, size - 2, size - 1
    with torch.no_grad():
        model = traced(OneHotTable(quantizer), (torch.zeros(codes.shape, dtype=torch.int64),), ["codes"], ["hidden"])
        wanted = quantizer(torch.from_numpy(codes)).numpy()
    build = built(fuse_affine_steps().rewrite(model).model, {"codes": codes}, tmp_path, converter_python())
    (simulated,) = build.simulated
    got = np.asarray(simulated["hidden"]).reshape(wanted.shape)
    for each in range(CODES):
        assert snr_db(wanted[..., each], got[..., each]) >= SIMULATOR_DB
    table = parse_layer_table(list(clean_lines(build.lines.read_bytes())))
    assert table is not None
    on_host = [layer for layer in table.layers if on_cpu(layer)]
    # Its integers are put into four axes and cast: 8 bytes each.
    assert [(layer.op, layer.rw_kb) for layer in on_host] == [("Reshape", 8.0), ("Cast", 8.0)]
    # None of the convolutions is cut into parts for its size: one for the semantic codebook, three of five others.
    height = {1: 1, 5: 3}
    shapes = [layer.inputs for layer in table.layers if layer.op in ("Conv", "ConvAdd")]
    assert {rows: sum(f"(1,{size},{rows},{CODES})" in each for each in shapes) for rows in height} == height
