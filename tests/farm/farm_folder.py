"""A farm's output folder as jobs leave it, with engines of a few bytes, for tests of what reads it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contracts.files import sha256_of
from contracts.manifest import CpuLayer, Layers, OnnxTwin
from contracts.verdicts import Measurement, Verdict, at_least
from farm.jobs import Job, Kind, Plan, Unplanned, write_plan
from farm.outcomes import Ended, JobOutcome, MadeFile, write_outcome
from farm.places import FarmPlaces
from tests.rknn_tts.built_engines import write_engine

MODELLED_MS = 20.0
FRAMES = 102
"""Of which 100 are emitted, 256 samples each at 22050 Hz (tests.rknn_tts.built_engines)."""

CPU_S = 25.0


def layers(modelled_ms: float = MODELLED_MS, cpu: int = 0) -> Layers:
    """The layers of an engine."""
    return Layers(
        250, 5_000_000, 70_000.0, modelled_ms, tuple(CpuLayer("Slice", f"s{i}", 1.0) for i in range(cpu)), None
    )


def simulated(db: float) -> Verdict:
    """The simulator's verdict."""
    return at_least("simulator.window", db, 40.0, "dB", "One real window.")


@dataclass
class FarmFolder:
    """The folder `output`, and the jobs that were planned in it so far."""

    output: Path
    jobs: list[Job] = field(default_factory=list)
    unplanned: list[Unplanned] = field(default_factory=list)

    @property
    def places(self) -> FarmPlaces:
        return FarmPlaces(self.output)

    def plan(self) -> FarmFolder:
        """Write the plan of all jobs so far."""
        self.places.own.mkdir(parents=True, exist_ok=True)
        write_plan(Plan("voices.toml", tuple(self.jobs), tuple(self.unplanned)), self.places.plan)
        return self

    def job(self, kind: Kind, voice: str, target: str | None, *needs: Job) -> Job:
        """A job of `voice` that nothing became of as yet."""
        folder = f"{target or 'onnx'}/{voice}"
        digest = hashlib.sha256(f"{kind} {voice} {target}".encode()).hexdigest()[:16]
        of = ("piper", "decoder", voice, "", target, "2.3.2", "en-GB")
        made = Job(f"{kind.value}-{digest}", kind, ((kind.value, "--json"),), folder, tuple(n.id for n in needs), *of)
        self.jobs.append(made)
        return made

    def ended(
        self,
        job: Job,
        *files: Path | MadeFile,
        ended: Ended = Ended.DONE,
        sentence: str | None = None,
        node: str = "n1",
    ) -> None:
        """What became of `job`, and the files that it left."""
        made = tuple(self.made(file) if isinstance(file, Path) else file for file in files)
        models = tuple(file.path for file in made if file.path.endswith(".onnx"))
        outcome = JobOutcome(job.id, ended, sentence, node, 1, 1.8e9, 26.0, CPU_S, 1_500_000_000, made, models)
        write_outcome(outcome, self.places.outcome(job.id))

    def made(self, path: Path) -> MadeFile:
        """The file `path` as an outcome has it."""
        return MadeFile(path.relative_to(self.output).as_posix(), sha256_of(path), path.stat().st_size)

    def export(self, voice: str) -> Job:
        """An export that is done; its graph holds the voice's name."""
        job = self.job(Kind.EXPORT, voice, None)
        graph = self.output / job.folder / "piper-decoder-w102.onnx"
        graph.parent.mkdir(parents=True)
        graph.write_bytes(voice.encode("utf-8", "surrogateescape"))
        self.ended(job, graph)
        return job

    def engine(self, voice: str, target: str, **more: Any) -> Path:
        """An engine with its manifest, where a job of `voice` for `target` puts it."""
        given: dict[str, Any] = {
            "layers": layers(),
            "verdicts": (simulated(45.5), at_least("fp32.whole", 120.0, 95.0, "dB")),
            "measurements": (
                Measurement(name="build.wall", measured=3.5, unit="s", reason="of the moment"),
                Measurement(name="build.cpu", measured=3.25, unit="s", reason="of the moment"),
                Measurement(name="build.peak_memory", measured=700.0, unit="MB", reason="of the moment"),
            ),
            "onnx": OnnxTwin(
                "piper-decoder-w102.onnx", hashlib.sha256(voice.encode("utf-8", "replace")).hexdigest(), 15, 3
            ),
        }
        folder = self.output / target / voice
        return write_engine(
            folder, "piper-decoder-w102", "piper.decoder", target=target, frames=FRAMES, **{**given, **more}
        )

    def compiled(self, voice: str, target: str, *needs: Job, page: bool = False, node: str = "n1", **more: Any) -> Job:
        """A compilation that is done, and its page."""
        job = self.job(Kind.COMPILE, voice, target, *needs)
        engine = self.engine(voice, target, **more)
        self.ended(job, engine, engine.with_suffix(".json"), node=node)
        if page:
            drawn = engine.with_suffix(".html")
            drawn.write_text("<!DOCTYPE html>", encoding="utf-8")
            self.ended(self.job(Kind.PAGE, voice, target, job), drawn)
        return job

    def twice(self, voice: str, target: str, compiled: Job, *, engine: bytes | None = None, node: str = "n2") -> Job:
        """The same made once more: the same bytes, or an engine that holds `engine`; its files are gone."""
        job = self.job(Kind.TWICE, voice, target, compiled)
        first = self.output / target / voice / "piper-decoder-w102.rknn"
        sha256 = sha256_of(first) if engine is None else hashlib.sha256(engine).hexdigest()
        graph = self.output / "onnx" / voice / "piper-decoder-w102.onnx"
        files = [MadeFile(f".farm/twice/{job.id}/{first.name}", sha256, 1)]
        files += [MadeFile(f".farm/twice/{job.id}/{graph.name}", sha256_of(graph), 1)] if graph.is_file() else []
        files += [MadeFile(f".farm/twice/{job.id}/{first.stem}.json", "ef" * 32, 1)]
        self.ended(job, *files, node=node)
        return job
