"""A matrix of the smallest voices for two targets, whose one window builds in about two seconds."""

from __future__ import annotations

from tests.vits_writer.recipe import Recipe

TINY = Recipe(flows=1, flow_layers=1, strides=(2, 2), decoder=4, resblock_kernels=(3,))
"""Of each voice, but for its seed."""

TINY_MATRIX = """
output = "out"
targets = ["rk3588", "rk3566"]
pages = false
twice = 0
[[voices]]
family = "piper"
checkpoints = ["voices/*.onnx"]
widths = [{window = 109}]
"""
