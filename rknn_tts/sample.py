"""A sentence to hear: as the original speaks it, whole and by windows, and as the engine does in the simulator."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rknn_tts_runtime import write_wav

from contracts.errors import UserInput
from contracts.manifest import read_manifest
from contracts.serial import from_json, to_json
from contracts.verdicts import Measurement
from converters.stages import Array, Sample, Sentence
from engine.build import read_build
from gates.snr import snr_db
from rknn_tts.build_step import Build, built
from rknn_tts.carried import feeds_to_npz
from rknn_tts.checkpoint_to_onnx import Conversion
from rknn_tts.extras import ensure_extras, pinned_text
from rknn_tts.outcome import Outcome
from rknn_tts.parity import followed_feeds
from rknn_tts.places import ANOTHER_SAMPLE_PLACE, check_folder, make_folder
from rknn_tts.progress import Say
from rknn_tts.publish import publish
from rknn_tts.request import Request
from rknn_tts.steps import Steps

REFERENCE, WINDOWS, ENGINE = "reference.wav", "windows.wav", "engine.wav"
"""The original's full-length decode; the original on the engine's windows; the engine on them, in the simulator."""

ID_DIGITS = len(str(2**63 - 1))
"""No id has more: voices take them as int64."""

RIFF = b"RIFF"
"""How a WAV file begins."""

_INFO, _ARRAYS = "sample.json", "samples.npz"

Render = Callable[[Sequence[Mapping[str, Array]]], NDArray[np.float32]]
"""See `Sample.render`."""


@dataclass(frozen=True)
class Heard:
    """What is said of a sample beside its files."""

    measurements: tuple[Measurement, ...]
    note: str


@dataclass(frozen=True)
class _Kept:
    """`sample.json`: what a spoken sample keeps beside its arrays."""

    heard: Heard
    sample_rate: int
    seams: tuple[int, ...]


def check_sample_folder(folder: Path) -> None:
    """See that a sample can be written into `folder`, and replaces nothing but one; nothing is made yet.

    Raises:
        UserInput: it cannot, or would.
    """
    if folder.exists() and not folder.is_dir():
        raise UserInput(f"--sample {folder}: is a file; name a folder.")
    check_folder(folder, ANOTHER_SAMPLE_PLACE)
    for name in (REFERENCE, WINDOWS, ENGINE):
        path = folder / name
        if path.is_dir() or (path.is_file() and not path.read_bytes()[: len(RIFF)] == RIFF):
            raise UserInput(f"{path}: is no WAV file, and would be replaced; --sample names another folder.")


def sentence_of(request: Request) -> Sentence:
    """The sentence that `request` asks to hear in a sample's folder.

    Raises:
        UserInput: it asks for two at once, for none of a sample's, or its ids are no numbers.
    """
    sentence, given = asked_sentence(request), asked_by(request)
    if given and request.sample is None:
        raise UserInput(f"{given[0]} says what a sample speaks: name a folder for it with --sample DIR.")
    return sentence


def asked_by(request: Request) -> list[str]:
    """The options of `request` that say what is to be spoken."""
    return [f"--{name}" for name in ("text", "ids") if getattr(request, name) is not None]


def asked_sentence(request: Request) -> Sentence:
    """The sentence that `request` asks to hear, wherever.

    Raises:
        UserInput: it asks for two at once, or its ids are no numbers.
    """
    if len(asked_by(request)) > 1:
        raise UserInput("--text and --ids both say what is to be spoken: give one of them.")
    if request.text is not None and not request.text.strip():
        raise UserInput("--text: there is nothing to speak in it.")
    if request.text is not None and any("\ud800" <= character <= "\udfff" for character in request.text):
        # How Python keeps a byte of the command line that it cannot decode; no phonemiser has a sound for it.
        raise UserInput("--text: is not valid UTF-8; write it in that encoding.")
    return Sentence(request.text, None if request.ids is None else _ids(request.ids))


def _ids(text: str) -> tuple[int, ...]:
    parts = text.replace(",", " ").split()
    if not parts or not all(part.isascii() and part.isdigit() and len(part) <= ID_DIGITS for part in parts):
        raise UserInput(f"--ids {text:.60}: whole numbers are expected, with commas between them: 1,0,20,0,2.")
    return tuple(int(part) for part in parts)


def read_sentence(conversion: Conversion, sentence: Sentence, steps: Steps) -> Sentence:
    """`sentence` as the checkpoint of `conversion` speaks it, with its ids: a cached step, before anything is built.

    Of a stage that reads none it is what it was.

    Raises:
        UserInput, Refusal: it cannot be spoken.
        ToolFailure: the phonemiser broke.
    """
    stage, say = conversion.origin.stage, conversion.say
    if not stage.reads:
        return sentence

    def work() -> Sentence:
        read = conversion.opened.read
        return sentence if read is None else read(sentence, lambda: ensure_extras(stage.text_extras, say))

    parts = {**conversion.parts, "sentence": json.dumps(to_json(sentence)), "text": pinned_text(stage.text_extras)}
    return steps.value("sentence", Sentence, parts, work)


@dataclass(frozen=True)
class Spoken:
    """A sample that was spoken.

    Attributes:
        folder: where its WAV files are kept, under the names above.
        whole: samples of the original's full-length decode.
        windowed: samples of the original on the engine's windows.
        engine: samples of the engine on them, in the simulator.
        sample_rate: samples per second.
        seams: samples at which one window hands over to the next.
        heard: what is said of it.
    """

    folder: Path
    whole: NDArray[np.float32]
    windowed: NDArray[np.float32]
    engine: NDArray[np.float32]
    sample_rate: int
    seams: tuple[int, ...]
    heard: Heard


@dataclass(frozen=True)
class Speaking:
    """An engine that speaks.

    Attributes:
        build: of it; its graph is compiled once more, to be simulated on the sentence's windows.
        conversion: its own.
    """

    build: Build
    conversion: Conversion


def speak(build: Build, conversion: Conversion, sentence: Sentence, steps: Steps, say: Say) -> Spoken:
    """The cached step `sample`: a sentence, spoken by the original and by the engine that `build` builds.

    Args:
        build: of the engine that speaks; its graph is compiled once more, to be simulated on the sentence's windows.
        conversion: the engine's.
        sentence: what it says, see `read_sentence`.
        steps, say: of the command.

    Raises:
        UserInput: the engine takes no sentence that is as short.
        ToolFailure, GateFailure, NotWritten: as for any build.
    """
    return speak_together((Speaking(build, conversion),), sentence, steps, say)


def speak_together(engines: Sequence[Speaking], sentence: Sentence, steps: Steps, say: Say) -> Spoken:
    """The same of a ladder whose engines are in their places: windows are picked as a board picks them.

    Raises:
        UserInput, ToolFailure, GateFailure, NotWritten: see `speak`.
    """
    opened, costs = engines[0].conversion, _costs(engines) if len(engines) > 1 else {}

    def work(made: Path) -> None:
        say.step("speaking a sentence")
        if len(engines) == 1:
            assert opened.opened.sample is not None
            sample = opened.opened.sample(sentence)
        else:
            assert opened.opened.ladder_sample is not None
            sample = opened.opened.ladder_sample(sentence, costs)
        outputs = _simulated(sample, engines, steps, say)
        engine = sample.render(outputs)
        clipped = [
            write_wav(str(made / name), samples, sample.sample_rate)
            for name, samples in ((REFERENCE, sample.whole), (WINDOWS, sample.windowed), (ENGINE, engine))
        ]
        heard = Heard(_figures(sample, engine), _note(sample, sum(clipped)))
        kept = _Kept(heard, sample.sample_rate, seams_of(sample.render, outputs))
        (made / _INFO).write_text(json.dumps(to_json(kept)), encoding="utf-8")
        np.savez(made / _ARRAYS, whole=sample.whole, windowed=sample.windowed, engine=engine)

    parts = {"sentence": json.dumps(to_json(sentence)), "costs": json.dumps(costs)}
    for each in engines:
        own = {**each.conversion.parts, **each.build.parts}
        parts |= own if len(engines) == 1 else {f"{each.conversion.role}.{name}": part for name, part in own.items()}
    folder = steps.folder("sample", parts, work)
    kept = from_json(_Kept, json.loads((folder / _INFO).read_text(encoding="utf-8")), "sample")
    with np.load(folder / _ARRAYS, allow_pickle=False) as arrays:
        whole, windowed, engine = arrays["whole"], arrays["windowed"], arrays["engine"]
    return Spoken(folder, whole, windowed, engine, kept.sample_rate, kept.seams, kept.heard)


def add_sample(
    outcome: Outcome,
    engines: Sequence[Speaking],
    folder: Path,
    sentence: Sentence,
    steps: Steps,
    say: Say,
) -> Outcome:
    """`outcome` of these `engines`, with a sample written into `folder` (`check_sample_folder`).

    Raises:
        UserInput, ToolFailure, GateFailure, NotWritten: see `speak_together`.
    """
    spoken = speak_together(engines, sentence, steps, say)
    files = [(folder / name, (spoken.folder / name).read_bytes()) for name in (REFERENCE, WINDOWS, ENGINE)]
    make_folder(folder, ANOTHER_SAMPLE_PLACE)
    publish(files, ANOTHER_SAMPLE_PLACE)
    return dataclasses.replace(
        outcome,
        files=(*outcome.files, *(str(path) for path, _ in files)),
        measurements=(*outcome.measurements, *spoken.heard.measurements),
        notes=(*outcome.notes, spoken.heard.note, *sentence.notes),
        reused=tuple(dict.fromkeys(steps.reused)),
    )


def seams_of(render: Render, outputs: Sequence[Mapping[str, Array]]) -> tuple[int, ...]:
    """The samples at which one window's share of what `render` makes of `outputs` ends and the next one's begins.

    Each share is found by changing that window alone: whatever puts windows together, those samples change. Where two
    shares overlap (windows that fade into each other), it is the middle of what they share.
    """
    plain = render(outputs)
    shares = []
    for number, output in enumerate(outputs):
        changed = {name: array + np.ones((), array.dtype) for name, array in output.items()}
        differs = np.flatnonzero(render([*outputs[:number], changed, *outputs[number + 1 :]]) != plain)
        if differs.size:
            shares.append((int(differs[0]), int(differs[-1]) + 1))
    return tuple((end + begin) // 2 for (_, end), (begin, _) in itertools.pairwise(shares))


def _costs(engines: Sequence[Speaking]) -> dict[str, float]:
    """What a run of each engine costs, in ms as modelled, by role; of those whose manifests tell."""
    layers = {each.conversion.role: read_manifest(each.build.places.manifest).layers for each in engines}
    return {role: told.modelled_ms for role, told in layers.items() if told is not None}


def _simulated(
    sample: Sample, engines: Sequence[Speaking], steps: Steps, say: Say
) -> tuple[dict[str, NDArray[np.generic]], ...]:
    """What the simulator makes of each of the sample's windows, in their order."""
    roles = sample.roles if len(engines) > 1 else (engines[0].conversion.role,) * len(sample.feeds)
    made = {}
    for each in engines:
        feeds = [feed for feed, role in zip(sample.feeds, roles, strict=True) if role == each.conversion.role]
        if feeds:
            made[each.conversion.role] = iter(_simulated_by_one(feeds, each, steps, say))
    return tuple(next(made[role]) for role in roles)


def _simulated_by_one(
    feeds: Sequence[Mapping[str, Array]], engine: Speaking, steps: Steps, say: Say
) -> tuple[dict[str, NDArray[np.generic]], ...]:
    build, conversion = engine.build, engine.conversion
    followed = followed_feeds(conversion.opened.model, conversion.rewritten, conversion.origin.open_session, feeds)
    source = dataclasses.replace(build.source, make_feeds=functools.partial(feeds_to_npz, followed))
    places = dataclasses.replace(build.places, log=build.places.log.with_suffix(".sample.log"))
    speaking = dataclasses.replace(build, source=source, places=places)
    return read_build(built(speaking, steps, conversion.say, lambda: None)).simulated


def _figures(sample: Sample, engine: NDArray[np.float32]) -> tuple[Measurement, ...]:
    def figure(name: str, reference: NDArray[np.float32], measured: NDArray[np.float32], reason: str) -> Measurement:
        return Measurement(name=name, measured=round(snr_db(reference, measured), 2), unit="dB", reason=reason)

    return (
        figure(
            "sample.engine",
            sample.windowed,
            engine,
            f"{ENGINE} against {WINDOWS}: what fp16 and the rewrites change that can be heard, in the simulator",
        ),
        figure(
            "sample.windows",
            sample.whole,
            sample.windowed,
            f"{WINDOWS} against {REFERENCE}: what windows change; where statistics are of a window, another valid "
            "synthesis",
        ),
        figure(
            "sample.whole",
            sample.whole,
            engine,
            f"{ENGINE} against {REFERENCE}: both together",
        ),
    )


def _note(sample: Sample, clipped: int) -> str:
    told = f" {clipped} samples went beyond full scale, and were clipped." if clipped else ""
    return (
        f"The sample says {sample.said}. {ENGINE} is what the toolkit's simulator makes of it, and no board's output."
        f"{told}"
    )
