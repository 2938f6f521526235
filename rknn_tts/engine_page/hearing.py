"""What an engine sounds like: the stage's own sample, spoken by the original and by the engine in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import Refusal
from contracts.manifest import Manifest
from converters.stages import Sentence
from engine.environment import converter_python
from logs.regtask import parse_accepted
from rknn_tts.build_step import Build
from rknn_tts.engine_page.remade import Member, remade, stage_of
from rknn_tts.exported_sources import exported_sources
from rknn_tts.places import engine_places
from rknn_tts.progress import Say
from rknn_tts.sample import Speaking, Spoken, read_sentence, speak_together
from rknn_tts.steps import Steps


@dataclass(frozen=True)
class Hearing:
    """A sample of an engine.

    Attributes:
        spoken: what was said.
        notes: sentences about it: what was left out when a text was read.
        command: the command that builds the same graph of the checkpoint.
    """

    spoken: Spoken
    notes: tuple[str, ...]
    command: str


def heard(
    engines: Sequence[tuple[Manifest, Path]], checkpoint: str | None, sentence: Sentence, steps: Steps, say: Say
) -> Hearing:
    """The sample of one engine, or of all engines of a ladder, picked as a board picks them; cached like every step.

    Each twin's graph is compiled and simulated once more.

    Args:
        engines: manifests, and the engines' files; the twins stand beside them.
        checkpoint: where the user says the checkpoint is; None: the stage's package.
        sentence: what is said; neither text nor ids: the stage's own sentence.
        steps: those of the command.
        say: gets the progress.

    Raises:
        UserInput: `checkpoint` is not the engines', or the sentence cannot be spoken.
        Refusal: there is nothing to hear of them, as a clause behind a colon.
        ToolFailure, GateFailure: the toolkit broke.
    """
    stage = stage_of(engines[0][0])
    if not stage.speaks:
        raise Refusal(f"{stage.family} {stage.name} has no sample: what it gives is nothing to hear.")
    if (sentence.text is not None or sentence.ids is not None) and not stage.reads:
        raise Refusal(f"{stage.family} {stage.name} reads no sentence of yours: leave --text and --ids out.")
    members = [Member(manifest, engine.with_name(Path(manifest.onnx.file).name)) for manifest, engine in engines]
    found = remade(members, checkpoint, steps, say)
    first = found.conversions[0]
    if (first.opened.sample if len(engines) == 1 else first.opened.ladder_sample) is None:
        raise Refusal(f"{stage.family} {stage.name} has no sample of this engine.")
    read = read_sentence(first, sentence, steps)
    sources = exported_sources(found.conversions, steps)
    python = converter_python(members[0].manifest.toolkit.version)
    speaking = []
    for conversion, source in zip(found.conversions, sources, strict=True):
        manifest, engine = next(one for one in engines if (one[0].role or "") == conversion.role)
        accepted = tuple(sorted(parse_accepted(text) for text in manifest.log.accepted))
        places = engine_places(source.contract, source.stem, manifest.target, str(engine))
        build = Build(found.request, manifest.target, source, accepted, places, python)
        speaking.append(Speaking(build, conversion))
    return Hearing(speak_together(speaking, read, steps, say), read.notes, found.command)
