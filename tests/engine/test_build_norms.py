"""The real toolkit on normalisations as they are spelled out, and on what the passes make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from cost.model import modelled_ms, on_cpu
from engine.build import BuildResult
from logs.layer_table import Layer, parse_layer_table
from logs.lines import clean_lines
from surgery.declaration import Pass
from surgery.fuse_instance_norm import fuse_instance_norm
from surgery.fuse_layer_norm import fuse_layer_norm
from surgery.rewrite_channel_differences import rewrite_channel_differences
from surgery.rewrite_long_broadcast import rewrite_long_broadcast
from surgery.rewrite_means_as_pools import rewrite_means_as_pools
from tests.engine.toolkit_runs import built
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.norm_graphs import Steps, affine, masked, normalise

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""

CHANNELS, VALID = 32, 900


def layers(build: BuildResult) -> tuple[Layer, ...]:
    """The layer table of a build."""
    table = parse_layer_table(list(clean_lines(build.lines.read_bytes())))
    assert table is not None
    return tuple(table.layers)


def passes(target: str) -> tuple[Pass, ...]:
    """In their order."""
    return fuse_layer_norm(), fuse_instance_norm(target), rewrite_means_as_pools(), rewrite_channel_differences()


def norms(steps: int, scale: float) -> onnx.ModelProto:
    """A layer norm of the channels, an instance norm, and a masked one of deviation `scale`, between convolutions."""
    made = Steps()
    channels = affine(made, normalise(made, made.conv("x", CHANNELS, 1), [1], division="Reciprocal"), (CHANNELS, 1))
    instance = affine(made, normalise(made, made.conv(channels, CHANNELS, 2), [2], division="1 /"), (CHANNELS, 1))
    made.conv(masked(made, made.conv(instance, CHANNELS, 3, scale), "mask", [2]), CHANNELS, 4)
    return made.proto({"x": (1, CHANNELS, steps), "mask": (1, 1, steps)}, (1, CHANNELS, steps))


def feed(steps: int) -> dict[str, Array]:
    mask = np.zeros((1, 1, steps), np.float32)
    mask[..., :VALID] = 1
    return {"x": np.random.default_rng(4).standard_normal((1, CHANNELS, steps)).astype(np.float32), "mask": mask}


def rewritten(original: onnx.ModelProto, target: str) -> ir.Model:
    """What the passes make of it; each has something to do."""
    model, hits = ir.from_proto(original), []
    for bound in passes(target):
        done = bound.rewrite(model)
        model = done.model
        hits.append(done.hits)
    assert hits == [1, 1, 2, 1]
    return model


def check(build: BuildResult, original: onnx.ModelProto, given: dict[str, Array], operators: dict[str, int]) -> None:
    """So many layers of `operators`, none on the CPU but what hands tensors in and out, and the original's values."""
    table = layers(build)
    assert {op: sum(layer.op == op for layer in table) for op in operators} == operators
    assert {layer.op for layer in table if on_cpu(layer)} <= {"Reshape"}
    assert snr_db(run(original, given)["y"], np.asarray(build.simulated[0]["y"])) >= THRESHOLD_DB


def test_norms_cost_less_and_keep_their_range_when_the_passes_have_run(converter_python: Path, tmp_path: Path) -> None:
    original, given = norms(1200, 20.0), feed(1200)
    builds = []
    for name, model in (("before", original), ("after", rewritten(original, "rk3588"))):
        (tmp_path / name).mkdir()
        builds.append(built(model, given, tmp_path / name, converter_python))
    before, after = builds
    check(after, original, given, {"exNorm": 2, "Transpose": 2})
    assert not np.all(np.isfinite(np.asarray(before.simulated[0]["y"])))  # the sums leave fp16
    assert modelled_ms(layers(after)) < 0.75 * modelled_ms(layers(before))


def test_no_transpose_falls_to_the_cpu_when_the_steps_are_no_multiple_of_four(
    converter_python: Path, tmp_path: Path
) -> None:
    original, given = norms(1201, 20.0), feed(1201)
    build = built(rewritten(original, "rk3566"), given, tmp_path, converter_python, "rk3566")
    check(build, original, given, {"exNorm": 1, "Transpose": 0})


def test_long_norm_builds_where_its_transposes_are_too_long(converter_python: Path, tmp_path: Path) -> None:
    """As an InstanceNormalization it does not: `equiv_channels(8196) > limitations(8192)`."""
    made, steps = Steps(), 16392
    made.conv(normalise(made, made.conv("x", 8, 1), [2], division="Reciprocal"), 8, 2)
    original = made.proto({"x": (1, 8, steps)}, (1, 8, steps))
    model = ir.from_proto(original)
    for bound in (fuse_instance_norm("rk3562"), rewrite_long_broadcast()):
        done = bound.rewrite(model)
        assert done.hits
        model = done.model
    given = {"x": np.random.default_rng(6).standard_normal((1, 8, steps)).astype(np.float32)}
    build = built(model, given, tmp_path, converter_python, "rk3562")
    check(build, original, given, {"exNorm": 0, "Transpose": 0})
