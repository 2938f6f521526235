"""What the board companion adds to what runs engines: time beside its engines, opening, imports, memory.

`make bench` runs it, a minute or two. There is no board here: engines are twins in onnxruntime on one thread. Every
figure is a ratio of one run, and a bound is one that holds on whatever machine.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.host_session import open_host
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.engine_file import short_contract_of
from rknn_tts_runtime.identity import sha256_of
from rknn_tts_runtime.speaking.piper import open_piper
from rknn_tts_runtime.speaking.speaker import Asked
from rknn_tts_runtime.speaking.streaming_report import StreamingReport, measured

from contracts.contract import Source, short_contract
from contracts.files import sha256_of as digest_of
from converters.piper.decoder import VOICE, open_decoder
from converters.stages import Checkpoint, StageOptions
from rknn_tts.steps import ROOT
from tests.bench.measured import measure
from tests.bench.ratios import ROUNDS, Figure, Table, in_turn
from tests.onnx_runs import open_session
from tests.rknn_tts.engines import CONTRACT, engine_bytes
from tests.runtime.speaking.small_voices import plan_of, write_export

REPORT = ROOT / "build-logs" / "bench-runtime.json"

ENGINE, TWIN, HOST = "piper-decoder-w109.rknn", "piper-decoder-w109.onnx", "piper-host.onnx"

LONG = Asked(phonemes="ðə kwˈɪk bɹˈaʊn fˈɑːks dʒˈʌmps ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ, " * 3)
"""One sentence of ten windows or so."""

LEAST_WINDOWS = 8

WALK_SHARE = 0.05
"""Of a sentence's time, what is neither host half nor engine: the issue asks for a thin runtime."""

FIRST_SHARE = 0.5
"""Of a sentence of so many windows, the time to the first one's audio: it waits for the host half and one window."""

CONTRACT_SHARE = 0.2
"""Of reading an engine, to read its contract and its description, which stand in the first kilobytes and the last."""

SCAN_SHARE = 4.0
"""Of the digest's time, what opening a host half adds to onnxruntime: the look for weights in other files. A regular
expression took seven to fourteen times the digest's; now it is about as much."""

IMPORT_RATIO = 2.5
"""Of the command line's CPU time, over that of numpy, which it needs."""

MODEL_COPIES, BESIDE_MB = 4.0, 200.0
"""Peak memory of a process that speaks: onnxruntime holds a file, its graph and the packed form of its weights while it
loads; and Python with numpy and onnxruntime, which took 60 MB here."""

BIG_MB = 250
"""The largest host half known (Kokoro's) has 246 MB, and an engine of CosyVoice2's flow 170."""

BIG_ROUNDS = 3

STARTS = {
    "numpy": ["-c", "import numpy"],
    "cli": ["-c", "import rknn_tts_runtime.cli"],
    "help": ["-m", "rknn_tts_runtime", "--help"],
}

LOADED = """
import sys
from rknn_tts_runtime.cli import main
try:
    main(["--help"])
except SystemExit:
    print(*sys.modules)
"""


@pytest.fixture(scope="module")
def voice(fetched_voice: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the twin of the default voice's decoder, its host half and a plan."""
    folder = tmp_path_factory.mktemp("voice")
    path = folder / VOICE.file
    for file in (VOICE.file, f"{VOICE.file}.json"):
        shutil.copy(fetched_voice / file, folder / file)
    checkpoint = Checkpoint(path, Source(path.name, digest_of(path), "checkpoint"))
    write_export(folder, open_decoder(checkpoint, StageOptions(window=109), open_session)(""))
    plan_of(folder, decoder={"main": ENGINE})
    return folder


def test_speaking_is_its_engines(voice: Path, table: Table) -> None:
    backend = TwinBackend(threads=1)
    speaker = open_piper(plan_of(voice, decoder={"main": ENGINE}), backend)
    reports = [measured("piper", backend.name, backend.versions, speaker, LONG)[1] for _ in range(ROUNDS)]
    speaker.close()
    windows = reports[0].chunks
    assert windows >= LEAST_WINDOWS

    def median(value: Callable[[StreamingReport], float]) -> float:
        return statistics.median(value(report) for report in reports)

    total = median(lambda report: report.total_ms)
    beside = median(lambda report: report.total_ms - sum(stage.total_ms for stage in report.stages))
    engine = median(lambda report: sum(stage.total_ms for stage in report.stages if stage.name == "decoder"))
    first = median(lambda report: report.first_audio_ms)
    table.add(
        Figure(f"Piper, {windows} windows: beside host half and engine, of the whole", "ms", beside, total, WALK_SHARE),
        Figure("the same: in the engine, of the whole", "ms", engine, total),
        Figure("the same: to the first audio, of the whole", "ms", first, total, FIRST_SHARE),
    )


def test_memory_of_a_process_that_speaks(voice: Path, tmp_path: Path, table: Table) -> None:
    say: list[str | Path] = [sys.executable, "-m", "rknn_tts_runtime", "say", "--plan", voice / "plan.json"]
    say += ["--backend", "onnx", "--phonemes", LONG.phonemes or "", "--out", "x.wav"]
    peak_mb = measure(say, tmp_path, os.environ).process_peak_mb
    models_mb = sum((voice / name).stat().st_size for name in (TWIN, HOST)) / 1e6
    bound = MODEL_COPIES + BESIDE_MB / models_mb
    table.add(Figure("say of Piper: peak memory, over twin and host half", "MB", peak_mb, models_mb, bound))


def test_opening_reads_little(tmp_path: Path, table: Table) -> None:
    engine, host = tmp_path / "engine.rknn", tmp_path / "host.onnx"
    weights = np.random.default_rng(0).standard_normal(BIG_MB * 1_000_000 // 4, np.float32)
    contract = short_contract(CONTRACT, "rk3588", "2.3.2").encode()
    engine.write_bytes(engine_bytes(contract + b"\0" + weights.tobytes()))
    host.write_bytes(host_half(weights))
    read_ms, digest_ms, contract_ms, bare_ms, open_ms = in_turn(
        lambda: read(engine),
        lambda: sha256_of(engine),
        lambda: short_contract_of(engine),
        lambda: onnxruntime.InferenceSession(str(host), providers=["CPUExecutionProvider"]),
        lambda: open_host(host).close(),
        rounds=BIG_ROUNDS,
    )
    added_ms = open_ms - bare_ms
    table.add(
        Figure(f"an engine of {BIG_MB} MB: its contract, over reading it", "ms", contract_ms, read_ms, CONTRACT_SHARE),
        Figure("the same: its digest (check), over reading it", "ms", digest_ms, read_ms),
        Figure(f"a host half of {BIG_MB} MB: opened, over onnxruntime alone", "ms", open_ms, bare_ms),
        Figure("the same: what we add, over a digest of as much", "ms", added_ms, digest_ms, SCAN_SHARE),
    )


def test_starting_is_importing_numpy(tmp_path: Path, table: Table) -> None:
    def cpu_ms(words: list[str]) -> float:
        return measure([sys.executable, *words], tmp_path, os.environ).cpu_s * 1e3

    times = [[cpu_ms(words) for words in STARTS.values()] for _ in range(ROUNDS)]
    numpy_ms, cli_ms, help_ms = (statistics.median(column) for column in zip(*times, strict=True))
    table.add(
        Figure("importing the command line, over numpy", "ms CPU", cli_ms, numpy_ms, IMPORT_RATIO),
        Figure("--help, over importing numpy", "ms CPU", help_ms, numpy_ms, IMPORT_RATIO),
    )
    loaded = set(measure([sys.executable, "-c", LOADED], tmp_path, os.environ).output.split())
    assert "rknn_tts_runtime.cli" in loaded
    assert not loaded & {"onnxruntime", "onnx", "torch"}


def read(path: Path) -> None:
    """Read the file `path` once."""
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass


def host_half(weights: Array) -> bytes:
    """An ONNX that holds `weights`."""
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["w", "at"], ["y"], axis=0)],
        "host",
        [onnx.helper.make_tensor_value_info("at", onnx.TensorProto.INT64, ["n"])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n"])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 15)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data
