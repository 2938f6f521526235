"""The rows of a sweep: what an engine costs, and whether it may be built."""

from __future__ import annotations

from dataclasses import dataclass

from rknn_tts_runtime.window_cover import Rung

from contracts.contract import Contract
from contracts.manifest import Layers, Memory
from cost.emission import emission_of
from rknn_tts.numbers import BYTES_PER_MB, KB_PER_MB

PASSED, FAILED, BEATEN, COSTED = "passed", "failed", "beaten", "cost alone"
"""What is known of an engine: every gate passed, or one failed, or it was not built whole; or another beats it in every
figure, so that its gates were not run; or nobody asked for its gates."""

MS_PER_S = 1000


@dataclass(frozen=True)
class Size:
    """The geometry of an engine, in frames of its latent or in codes.

    Attributes:
        unit: "frame" or "code".
        width: of a run.
        emitted: what counts of it, between others.
        left, right: context on the sides.
        trim: frames whose samples come out, of a trimmed window; None: all.
        audio_s: seconds of audio emitted; None where nothing states the sample rate.
        units_per_s: frames or codes in a second of audio; None likewise.
    """

    unit: str
    width: int
    emitted: int
    left: int
    right: int
    trim: int | None
    audio_s: float | None
    units_per_s: float | None


@dataclass(frozen=True)
class Row:
    """One engine of a sweep.

    Attributes:
        name: as the candidate's, with the engine's role where it is of several.
        windows: how the option is given for it: `256t`.
        form: "plain", "masked", "trimmed" or "".
        context: frames of context that were asked for; None: the stage's own.
        role: which engine of its set it is, of a stage that builds several of one width; "" else.
        takes_short: whether it is exact on what is shorter than it.
        status: see `PASSED`.
        reason: why it did not pass, a clause; or what beats it.
        size: geometry; None where there is no graph.
        layers: its layer table in sum; None where there is no engine.
        memory: likewise.
        aperture_bytes: what it takes of the NPU's address space when it is loaded; None where it was not built whole.
        engine_bytes: of its file; None likewise.
        simulator_db: the worst of its simulated outputs; None likewise.
        fp32_db: the worst of its utterances in fp32, against the full-length decode; None where that was not run.
    """

    name: str
    windows: str
    form: str
    context: int | None
    role: str
    takes_short: bool
    status: str
    reason: str = ""
    size: Size | None = None
    layers: Layers | None = None
    memory: Memory | None = None
    aperture_bytes: int | None = None
    engine_bytes: int | None = None
    simulator_db: float | None = None
    fp32_db: float | None = None

    @property
    def ms_per_s(self) -> float | None:
        """Modelled ms of a second of audio that is emitted; None where it is not known."""
        if self.layers is None or self.size is None or not self.size.audio_s:
            return None
        return self.layers.modelled_ms / self.size.audio_s

    @property
    def run_ms(self) -> float | None:
        """Modelled ms of a run, behind which the first audio comes; None where there is no engine."""
        return self.layers.modelled_ms if self.layers is not None else None

    @property
    def memory_mb(self) -> float | None:
        """What it takes loaded: its estimate, or weights and tensors between layers where it was not built whole."""
        if self.aperture_bytes is not None:
            return self.aperture_bytes / BYTES_PER_MB
        return (self.memory.internal_kb + self.memory.weight_kb) / KB_PER_MB if self.memory is not None else None

    @property
    def figures(self) -> tuple[float | None, ...]:
        """What it is weighed by against the others, less being better; the first counts most."""
        layers, memory = self.layers, self.memory
        return (
            self.ms_per_s,
            self.run_ms,
            memory.internal_kb if memory is not None else None,
            self.engine_bytes,
            len(layers.cpu) if layers is not None else None,
            0.0 if self.takes_short else 1.0,
        )

    @property
    def rung(self) -> Rung | None:
        """As the board's walk takes it; None where there is no engine, or it has no window."""
        if self.size is None or self.layers is None:
            return None
        size = self.size
        return Rung(size.width, size.left, size.right, size.trim, self.takes_short, self.layers.modelled_ms)


def size_of(contract: Contract) -> Size | None:
    """The geometry that `contract` states; None where it states none."""
    emission = emission_of(contract)
    if emission is None:
        return None
    rate = emission.sample_rate
    per_s = rate / emission.samples if rate else None
    if contract.window is not None:
        window, trim = contract.window, contract.trim
        width, left, right = window.frames, window.left, window.right
        frames = trim.frames if trim is not None else None
        return Size(emission.unit, width, emission.count, left, right, frames, emission.audio_s, per_s)
    assert contract.step is not None
    step = contract.step
    return Size(emission.unit, step.codes, step.emitted, step.context, 0, None, emission.audio_s, per_s)
