"""Where a farm's files stand, below its output folder.

OUTPUT/onnx/VOICE/[WIDTH/]       exports, as `rknn-tts export` writes them
OUTPUT/TARGET/VOICE/[WIDTH/]     engines, as `rknn-tts engine` writes them, and their page
OUTPUT/catalogue.json, .html     what there is
OUTPUT/.farm/                    the farm's own: plan, outcomes, reports, logs, measurements, Snakemake's folder
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contracts.targets import TARGETS

EXPORTS_FOLDER = "onnx"
"""Below the output folder, beside those that are called as targets are."""


@dataclass(frozen=True)
class FarmPlaces:
    """The files below `output`."""

    output: Path

    @property
    def own(self) -> Path:
        """The farm's own folder; Snakemake runs there."""
        return self.output / ".farm"

    @property
    def made(self) -> tuple[Path, ...]:
        """Folders that hold what a farm made, and no checkpoints, though these may stand in the output folder too."""
        return tuple(self.output / name for name in (self.own.name, EXPORTS_FOLDER, *TARGETS))

    @property
    def plan(self) -> Path:
        """All jobs (farm.jobs)."""
        return self.own / "plan.json"

    @property
    def tasks(self) -> Path:
        """The jobs of the plan with what each may take, one a line (farm.tasks)."""
        return self.own / "tasks.txt"

    @property
    def settings(self) -> Path:
        """What the workflow and its runner are told (farm.settings)."""
        return self.own / "settings.json"

    @property
    def workflow_log(self) -> Path:
        """What Snakemake says in the last run."""
        return self.own / "snakemake.log"

    @property
    def measured(self) -> Path:
        """Memory and time by stage and width, as measured here (farm.measured)."""
        return self.own / "measured.json"

    @property
    def digests(self) -> Path:
        """Digests of the checkpoints' files as they were (rknn_tts/known_files.py)."""
        return self.own / "digests.json"

    @property
    def lock(self) -> Path:
        """Held while a farm is at work here."""
        return self.own / "lock"

    @property
    def earlier(self) -> Path:
        """The catalogue as it was before a run, which is compared with it."""
        return self.own / "earlier-catalogue.json"

    @property
    def scratch(self) -> Path:
        """Folder of what is made twice, and of nothing that is kept."""
        return self.own / "twice"

    @property
    def catalogue(self) -> Path:
        """What there is, as data."""
        return self.output / "catalogue.json"

    @property
    def page(self) -> Path:
        """What there is, as a page."""
        return self.output / "catalogue.html"

    def outcome(self, job: str) -> Path:
        """What became of a job (farm.outcomes)."""
        return self.own / "outcomes" / f"{job}.json"

    def report(self, job: str, command: int) -> Path:
        """The JSON object that a job's command printed, counted from 0."""
        return self.own / "reports" / f"{job}.{command}.json"

    def died(self, job: str) -> Path:
        """The note of an attempt that ended for want of memory or room, for the next one and for the catalogue."""
        return self.own / "died" / f"{job}.json"

    def log(self, job: str) -> Path:
        """What a job's commands said on stderr."""
        return self.own / "logs" / f"{job}.log"
