"""Holds docs/cosyvoice.md, cosyvoice2.md and cosyvoice3.md and the code together: tensors, gates, files, options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest

from contracts.thresholds import SIMULATOR_DB
from converters import cosyvoice_quality, number_lists
from converters.cosyvoice2 import (
    f0_export,
    flow_encoder_evidence,
    flow_encoder_geometry,
    flow_estimator_evidence,
    flow_estimator_geometry,
    hift_evidence,
    hift_export,
    hift_geometry,
    speaker_export,
    speaker_lengths,
    speech_head_export,
)
from converters.cosyvoice2.f0 import STAGE as F0
from converters.cosyvoice2.flow_encoder import STAGE as FLOW_ENCODER
from converters.cosyvoice2.flow_estimator import STAGE as FLOW_ESTIMATOR
from converters.cosyvoice2.hift import STAGE as HIFT
from converters.cosyvoice2.speaker import STAGE as SPEAKER
from converters.cosyvoice2.speech_head import STAGE as SPEECH_HEAD
from converters.cosyvoice2.speech_head_stand_in import HIDDEN, LOGITS
from converters.cosyvoice3 import evidence as flow_evidence
from converters.cosyvoice3 import geometry as flow_geometry
from converters.cosyvoice3.flow import STAGE as FLOW
from converters.stages import Stage, StageOptions
from cost.aperture import BUDGET_BYTES, MIB
from models.cosyvoice2 import (
    encoder_config,
    encoder_states,
    estimator_config,
    estimator_graphs,
    hift_config,
    hift_graph,
    speaker_config,
    speaker_graph,
)
from models.cosyvoice3 import config as flow_config
from models.cosyvoice3 import layout as flow_layout
from rknn_tts.request import options
from surgery.sine_forms import Form
from tests.cost.test_aperture import REFERENCE_MIB
from tests.docs.cosyvoice_tables import Shape, compared, tensor_tables
from tests.docs.pages import ROOT, prose

FRONT, SECOND, THIRD = (ROOT / "docs" / f"{name}.md" for name in ("cosyvoice", "cosyvoice2", "cosyvoice3"))

_GATE = re.compile(r"(?:fp32|host|sine)\.[a-z_]+")
_ROW = re.compile(r"^\| `([a-z0-9_.]+[A-Z]?)` \|.*\| (?:>=|<=|<) ([\d.]+) ?[^|]*\|$", re.MULTILINE)
_COST = re.compile(r"^\| (`[^|]+) \| [\d.]+ MB \| ([\d.]+) \|", re.MULTILINE)

CHUNK, AHEAD, HISTORY, FRAMES, WIDTH = 16, 3, 352, 32, 40


def told(page: Path) -> str:
    """The page's prose on one line."""
    return " ".join(prose(page).split())


def bounds(page: Path) -> dict[str, float]:
    """The gates of a page's table, to their bounds."""
    return {name: float(bound) for name, bound in _ROW.findall(prose(page))}


def gates_of(folder: str) -> Iterator[str]:
    """The gates that a family's converter names; sizes in a name left out."""
    for path in sorted((ROOT / "converters" / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _GATE.fullmatch(node.value):
                yield node.value


@pytest.mark.parametrize(
    ("page", "folder", "shared"), [(SECOND, "cosyvoice2", {"sine.reach"}), (THIRD, "cosyvoice3", set[str]())]
)
def test_gates_of_the_pages_are_the_codes(page: Path, folder: str, shared: set[str]) -> None:
    of_page = {re.sub("[A-Z].*", "", name) for name in bounds(page)}
    assert {name for name in of_page if _GATE.fullmatch(name)} == {*gates_of(folder), *shared}


def test_bounds_of_cosyvoice2_are_the_codes() -> None:
    alike = ("export", "finished", "stepwise", "stepwise_first", "fewer_ahead", "short_N", "short_nN", "padded_nN")
    graph_db = {flow_encoder_evidence.GRAPH_DB, flow_encoder_evidence.STEPWISE_DB, flow_encoder_evidence.FINISHED_DB}
    graph_db |= {flow_estimator_evidence.GRAPH_DB, speaker_export.GRAPH_DB}
    assert len(graph_db) == 1
    assert bounds(SECOND) == {
        **dict.fromkeys((f"fp32.{name}" for name in (*alike, "original", "published")), min(graph_db)),
        "fp32.interior": min(hift_evidence.INTERIOR_DB, f0_export.INTERIOR_DB),
        "host.embedded": flow_encoder_evidence.HOST_DB,
        "host.time": flow_estimator_evidence.HOST_DB,
        "host.source": hift_evidence.HOST_DB,
        "sine.reach": 1,
        "quality.mel_cosine": cosyvoice_quality.REFERENCE_COSINE,
        "quality.mel_l1_relative": cosyvoice_quality.REFERENCE_L1,
        "quality.log_spectral_distance": hift_export.MOST_DISTANCE,
        "quality.logits_cosine": speech_head_export.REAL_COSINE,
        "quality.embedding_cosine": speaker_export.COSINE,
    }


def test_other_bounds_of_cosyvoice2_are_the_codes() -> None:
    finished = hift_evidence.FINISHED_DB
    assert (f0_export.GRAPH_DB, speech_head_export.PRODUCT_DB) == (110.0, 110.0)
    assert {finished[form] for form in (Form.TRIANGLE, Form.FINE, Form.FLOOR)} == {85.0}
    assert (
        f"`fp32.export` is owed at {hift_evidence.GRAPH_DB:.0f} dB by `hift` and at 110 by `f0` and `speech_head`, and "
        f"`fp32.finished` at 85 by `hift`, whose sines are approximated ({finished[Form.EXACT]:.0f} with `exact`, "
        f"{finished[Form.SOFT]:.0f} with `soft`, {finished[Form.CLIP]:.0f} with `clip`), and at 110 by the other two"
    ) in told(SECOND)
    assert (
        f"The simulator owes {hift_export.SIMULATOR_DB:.0f} dB of `hift` ({hift_export.CLIPPED_DB:.0f} with `clip`), "
        f"{f0_export.SIMULATOR_DB:.0f} of `f0` and {SIMULATOR_DB:.0f} of the others in fp16"
    ) in told(SECOND)
    assert f"; {speech_head_export.SYNTHETIC_COSINE} on seeded hidden states in 8 bits |" in told(SECOND)


def test_bounds_of_cosyvoice3_are_the_codes() -> None:
    assert bounds(THIRD) == {
        **dict.fromkeys(("fp32.original", "fp32.export", "fp32.finished", "fp32.padded_nN"), flow_evidence.PADDED_DB),
        "simulator": SIMULATOR_DB,
        "quality.mel_cosine": cosyvoice_quality.OTHER_COSINE,
        "quality.mel_l1_relative": cosyvoice_quality.OTHER_L1,
        "log.aperture": 4096,
    }


def with_four_axes(shapes: dict[str, Shape]) -> dict[str, Shape]:
    """As engines have them: three axes are four, one of them 1 (`rewrite_interface_axes`)."""
    return {name: (*shape[:-1], 1, shape[-1]) if len(shape) == len("NCT") else shape for name, shape in shapes.items()}


ENCODER_SIZES = encoder_states.StepSizes(CHUNK, AHEAD, HISTORY)
ESTIMATOR = estimator_config.TRUE_CONFIG
STATES = estimator_graphs.state_shapes(ESTIMATOR, HISTORY)
VOCODER = hift_config.TRUE_CONFIG
COLUMNS = 120 * WIDTH + 1


@pytest.mark.parametrize(
    ("table", "real", "sizes"),
    [
        (
            "speaker, T frames",
            {**speaker_graph.speaker_shapes(speaker_config.TRUE_CONFIG, FRAMES), "embedding": (1, 192)},
            {"T": FRAMES},
        ),
        (
            "flow_encoder, C tokens, A ahead, a history of H",
            {
                **encoder_states.input_shapes(encoder_config.TRUE_CONFIG, ENCODER_SIZES),
                "mu": encoder_states.output_shapes(encoder_config.TRUE_CONFIG, ENCODER_SIZES)["mu"],
            },
            {"C": CHUNK, "A": AHEAD, "H": HISTORY},
        ),
        (
            "flow_estimator, T frames",
            {
                **with_four_axes(estimator_graphs.input_shapes(ESTIMATOR, FRAMES)),
                "estimator_out": (2, 80, 1, FRAMES),
            },
            {"T": FRAMES},
        ),
        ("flow_estimator, the step's states", STATES, {"H": HISTORY}),
        ("f0, W frames", {**with_four_axes(hift_graph.f0_shapes(VOCODER, WIDTH)), "f0": (1, WIDTH)}, {"W": WIDTH}),
        (
            "hift, W frames",
            {**with_four_axes(hift_graph.hift_shapes(VOCODER, WIDTH)), "spec_phase": (1, 18, 1, COLUMNS)},
            {"W": WIDTH},
        ),
        ("speech_head", {"hidden": (1, HIDDEN, 1, 1), "logits": (1, LOGITS, 1, 1)}, {}),
    ],
)
def test_tensors_of_cosyvoice2_are_the_codes(table: str, real: dict[str, Shape], sizes: dict[str, int]) -> None:
    of_page, of_code = compared(tensor_tables(SECOND)[table], real, sizes)
    assert of_page == of_code


def test_every_table_of_tensors_is_held() -> None:
    of_hosts = {"host", "cosyvoice2-hift-host.onnx"}
    tables = tensor_tables(SECOND)
    assert len(tables) == len(of_hosts) + 7  # those above
    assert of_hosts < set(tables)
    assert set(tables["host"]) == {"tokens", "speaker", "embedded", "spks"}
    names = ("PITCH", "NOISE", "BEFORE", "CACHED", "HAR", "SOURCE", "TURNS")
    assert set(tables["cosyvoice2-hift-host.onnx"]) == {getattr(hift_graph, name) for name in names}


def test_tensors_of_cosyvoice3_are_the_codes() -> None:
    shapes = flow_layout.input_shapes(flow_config.TRUE_CONFIG, FRAMES)
    (table,) = tensor_tables(THIRD).values()
    of_page, of_code = compared(table, {**shapes, flow_layout.OUTPUT: (2, 80, FRAMES)}, {"S": FRAMES})
    assert of_page == of_code


@pytest.mark.parametrize(
    "stage", [FLOW_ENCODER, FLOW_ESTIMATOR, F0, HIFT, SPEAKER, SPEECH_HEAD, FLOW], ids=lambda stage: str(stage.name)
)
def test_files_and_options_of_a_stage_are_told(stage: Stage) -> None:
    page = SECOND if stage.family == "cosyvoice2" else THIRD
    files = set(re.findall(r"[\w.]+\.(?:pt|onnx)", stage.checkpoints or ""))
    assert files
    text = FRONT.read_text(encoding="utf-8") + page.read_text(encoding="utf-8")
    assert [name for name in files if f"`{name}`" not in text] == []
    flags = [option.flag for option in options("engine") if option.name in stage.options]
    assert [flag for flag in flags if flag not in text and _as_make(flag) not in text] == []


def _as_make(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_").upper() + "="


def test_defaults_and_limits_of_cosyvoice2_are_the_codes() -> None:
    encoder, estimator = flow_encoder_geometry, flow_estimator_geometry
    assert (encoder.MOST_CHUNK, encoder.MOST_HISTORY) == (estimator.MOST_CHUNK, estimator.MOST_HISTORY)
    text = told(SECOND)
    buckets = f"{hift_geometry.LEAST_FRAMES} to {hift_config.MOST_FRAMES}"
    segments = f"{speaker_lengths.FRAMES_PER_SEGMENT} or a multiple of that, up to {speaker_lengths.MOST_FRAMES}"
    wanted = (
        f"`--chunk` 1 to {encoder.MOST_CHUNK} tokens, {encoder.DEFAULT_CHUNK} by default",
        f"`--look-ahead {encoder.DEFAULT_LOOK_AHEAD}`: one engine each",
        f"`--history` up to {encoder.MOST_HISTORY} tokens, {encoder.DEFAULT_HISTORY} by default: 14 s",
        f"`--chunk` 1 to {estimator.MOST_CHUNK} tokens (two frames each), {estimator.DEFAULT_CHUNK} by default",
        f"`--history` up to {estimator.MOST_HISTORY} tokens, {estimator.DEFAULT_HISTORY} by default: 5.1 s",
        f"without states: {estimator.SHORTEST} to {estimator.LONGEST} frames, at most {number_lists.MOST} lengths",
        f"`--buckets {hift_geometry.DEFAULT_BUCKETS}` are the widths in mel frames, {buckets}, one engine each",
        f"`LENGTHS={speaker_lengths.DEFAULT_LENGTHS}` are frames, 100 a second, one engine each: {segments}",
    )
    assert [words for words in wanted if words not in text] == []
    roles = (*FLOW_ENCODER.roles(StageOptions()), *FLOW_ESTIMATOR.roles(StageOptions()), *HIFT.roles(StageOptions()))
    assert [role for role in roles if f"`{role}`" not in text] == []


def test_bytes_of_states_are_the_codes() -> None:
    encoder = encoder_states.state_shapes(encoder_config.TRUE_CONFIG, flow_encoder_geometry.DEFAULT_HISTORY)
    frames = estimator_geometry_frames()
    assert f"They are {_megabytes(encoder):.1f} MB in float32" in told(SECOND)
    estimator = estimator_graphs.state_shapes(ESTIMATOR, frames)
    assert f"{_megabytes(estimator):.1f} MB in float32 at the default H of {frames}" in told(SECOND)
    assert sum(name.endswith(("keys", "values")) for name in estimator) == 112


def estimator_geometry_frames() -> int:
    """The frames of the estimator's default history."""
    return flow_estimator_geometry.DEFAULT_HISTORY * flow_estimator_geometry.FRAMES_PER_TOKEN


def _megabytes(shapes: dict[str, Shape]) -> float:
    """Of float32."""
    return sum(4 * prod(shape) for shape in shapes.values()) / 1e6


def test_a_streams_time_is_the_sum_of_its_engines() -> None:
    costs = {name.replace("`", ""): float(ms) for name, ms in _COST.findall(prose(SECOND))}
    head = 16 * costs["speech_head, W8A8"]
    encoder = costs["flow_encoder, 16 tokens and 3 ahead"]
    estimator = costs["flow_estimator, a step of 32 frames"]
    first, later = (costs[f"f0, {width} frames"] + costs[f"hift, {width} frames"] for width in (32, 40))
    one, ten = (head + encoder + steps * estimator + later for steps in (1, 10))
    text = told(FRONT)
    for label, ms in (
        ("`speech_head`, 16 times", f"{head:.1f}"),
        ("`flow_encoder`", f"{encoder:.1f}"),
        ("`flow_estimator`, a solver's step", f"{estimator:.1f}"),
        ("`f0` and `hift`, 32 frames: the first", f"{first:.1f}"),
        ("`f0` and `hift`, 40 frames: later ones", f"{later:.0f}"),
        (
            "**all but the language model, one solver's step**",
            f"**{one:.0f}** of 640 ms",
        ),
        ("**the same, ten**", f"**{ten:.0f}**"),
    ):
        assert f"| {label} | {ms}" in text


def test_limits_of_cosyvoice3_are_the_codes() -> None:
    text = told(THIRD)
    assert f"LENGTHS={flow_geometry.DEFAULT_LENGTHS}" in THIRD.read_text(encoding="utf-8")
    least, most, lengths = flow_geometry.SHORTEST, flow_geometry.LONGEST, number_lists.MOST
    assert f"{least} to {most}, ascending, at most {lengths} of them" in text
    assert f"Past {flow_geometry.LOADED_FRAMES} frames" in text


def test_ladders_of_cosyvoice3_are_the_arithmetics() -> None:
    text = told(THIRD)
    rows = {
        cells[0]: cells[1:]
        for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in prose(THIRD).splitlines())
        if len(cells) > 6
    }
    lengths = rows["Mel frames"]
    reference, ours = (
        dict(zip(lengths, rows[name], strict=True))
        for name in ("the reference's, as its board reports it", "ours, estimated")
    )
    assert {f"s{length}": int(mib) for length, mib in reference.items() if mib.isdigit()} == REFERENCE_MIB
    ladder = sum(int(ours[length]) for length in flow_geometry.DEFAULT_LENGTHS.split(","))
    assert ladder <= BUDGET_BYTES // MIB
    assert f"all four, {ladder} MiB" in text
    assert f"{BUDGET_BYTES // MIB} MiB at most" in text
