"""One engine of Qwen3's speech decoder: a streaming step of so many codes, or the step of an event."""

from __future__ import annotations

from math import prod

from contracts.contract import CodeStep, Contract, TensorSpec
from contracts.thresholds import OF_OUTPUT
from converters.qwen3 import evidence
from converters.qwen3.geometry import CODES
from converters.qwen3.layout import layout
from converters.qwen3.opening import Opening
from converters.qwen3.sine_reach import reaches_of, sine_cuts
from converters.stages import StageExport
from models.qwen3.config import DecoderConfig
from models.qwen3.step_graph import AUDIO, CACHE_OUT

AUDIO_DB, CACHE_DB = 33.0, 43.0
"""Least simulator SNR of what a step gives, against the whole decode (the issue's bounds; docs/qwen3.md has what was
measured)."""

SIMULATED_VALUE_BYTES, SIMULATED_WEIGHT_BYTES = 1400, 25
"""Memory of a simulation for each value of the signal behind the last wave block, for all layers of all blocks stay
there, and for each weight. Steps of 16 and of 64 codes at the published sizes take 6.9 and 19.0 GB (2.3.2)."""

HOST_FILE = "qwen3-host.onnx"


def step_export(opening: Opening, role: str) -> StageExport:
    """The engine for `role` of an open checkpoint."""
    size = opening.geometry.sizes[role]
    model = opening.model(size.codes)
    reaches = reaches_of(opening)
    going_on, starting = runs = evidence.runs_of(opening, role)
    return StageExport(
        stem=opening.geometry.stem(role),
        contract=_contract(opening, role),
        model=model,
        passes=(),
        feeds=(going_on.feed,),
        padded_feeds=(starting.feed,),
        host=opening.host,
        host_file=HOST_FILE,
        notes=(opening.file.note,) if opening.file.note else (),
        evidence=lambda: evidence.evidence_of(opening, role, reaches, runs),
        cuts=sine_cuts(opening, model, reaches),
        references=(going_on.owed, starting.owed),
        session=lambda: opening.known(size.codes),
    )


def _contract(opening: Opening, role: str) -> Contract:
    size, config = opening.geometry.sizes[role], opening.config
    return Contract(
        family="qwen3",
        stage="speech_decoder",
        source=opening.file.source,
        inputs=tuple(
            TensorSpec(name, shape, "int64" if name == CODES else "float32")
            for name, shape in opening.shapes(size.codes).items()
        ),
        outputs=(TensorSpec(AUDIO, ()), TensorSpec(CACHE_OUT, ())),  # shapes are read from the finished graph
        cache=opening.layout,
        step=CodeStep(
            codes=size.codes,
            samples_per_code=config.samples_per_code,
            sample_rate=opening.sample_rate,
            kv_len=config.kv_len,
            head_dim=config.head_dim,
            context=size.context,
            emitted=size.emitted,
        ),
        thresholds={f"{OF_OUTPUT}{AUDIO}": AUDIO_DB, f"{OF_OUTPUT}{CACHE_OUT}": CACHE_DB},
        role=role,
        simulator_bytes=simulator_bytes(config, size.codes),
    )


def simulator_bytes(config: DecoderConfig, codes: int) -> int:
    """Memory that simulating a step of so many codes takes, about."""
    values = codes * config.samples_per_code * config.block_channels(len(config.upsample_rates))
    weights = sum(map(prod, layout(config).values()))
    return values * SIMULATED_VALUE_BYTES + weights * SIMULATED_WEIGHT_BYTES
