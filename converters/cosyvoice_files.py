"""Where the files of a CosyVoice release stand, of either family: what `--checkpoint` may name for a stage.

A release is one folder of named files, of which each stage reads one:

    flow.pt                              the flow: encoder and estimator, and what embeds tokens and speakers
    flow.decoder.estimator.fp32.onnx     the estimator alone, with any length
    hift.pt                              the vocoder and its predictor of pitch
    llm.pt                               the language model; of it, the speech head
    campplus.onnx                        the speaker encoder

Sizes are read from the weights: `cosyvoice2.yaml` names classes to be built, and nothing of a checkpoint is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from contracts.contract import RANDOM, Source
from contracts.errors import UserInput
from contracts.files import sha256_of, sha256_of_bytes
from contracts.seed import SEED
from converters.hub_places import HUB, repository_name
from converters.stages import Checkpoint, FetchHub

FLOW, ESTIMATOR, HIFT = "flow.pt", "flow.decoder.estimator.fp32.onnx", "hift.pt"
LLM, CAMPPLUS = "llm.pt", "campplus.onnx"
IN_FLOW = "decoder.estimator."
"""Begins the names of the estimator's tensors in a `flow.pt`; what else is there is the encoder's."""

ONNX = ".onnx"
"""Ends the name of a graph, beside which its external data stands, under its name and something more."""

RELEASED = frozenset({FLOW, ESTIMATOR, HIFT, LLM, CAMPPLUS})

_NOTE = (
    "the weights are seeded random numbers at the published sizes of {name}: a stand-in for a checkpoint, nobody's "
    "voice; --checkpoint FOLDER names a real one"
)

Locate = Callable[[str, FetchHub], Checkpoint]


def locator(family: str, stage: str, files: Sequence[str], recipe: str, extras: frozenset[str]) -> Locate:
    """What finds the checkpoint of a stage.

    Args:
        family, stage: whose it is.
        files: names of the files that the stage can read, the best first; the first that a folder has is read.
        recipe: version and sizes of the stand-in, for its digest: a stand-in that is drawn otherwise is another one.
        extras: locks that reading any of them needs ("torch").
    """

    def locate(text: str, fetch_hub: FetchHub) -> Checkpoint:
        if text == RANDOM:
            description = f"{family} {stage}, stand-in {recipe}, seed {SEED}"
            source = Source(RANDOM, sha256_of_bytes(description.encode()), RANDOM)
            return Checkpoint(
                Path(RANDOM), source, note=_NOTE.format(name=f"{family} {stage}"), files=(), extras=extras
            )
        path = find_file(_fetched(text, files, fetch_hub) if text.startswith(HUB) else Path(text), files, text)
        return Checkpoint(path, Source(_called(path), sha256_of(path), "checkpoint"), files=(path,), extras=extras)

    return locate


def _fetched(text: str, files: Sequence[str], fetch_hub: FetchHub) -> Path:
    """The folder of a place on a hub, with the first of `files` that it has, and no other: they have up to 1.3 GB."""
    for name in files:
        folder = fetch_hub(text, (f"{name}*" if name.endswith(ONNX) else name,))
        if (folder / name).is_file():
            break
    return folder


def _called(path: Path) -> str:
    """The name of a checkpoint, for what is made of it: a release's file is called as the release, whose stages then
    lie in one folder; any other as it is."""
    release = repository_name(path.parent) if path.name in RELEASED else ""
    return f"{release}{path.suffix}" if release else path.name


def find_file(path: Path, files: Sequence[str], asked: str) -> Path:
    """The file that is read of what a user `asked` for, which is at `path`: itself, or the first of `files` in it.

    A file may have any name: its ending tells what it is, of those that `files` have.

    Raises:
        UserInput: there is none.
    """
    names = " or ".join(files)
    if path.is_dir():
        found = next((path / name for name in files if (path / name).is_file()), None)
        if found is None:
            raise UserInput(f"--checkpoint {asked:.300}: holds no {names}.")
        return found
    if not path.is_file():
        raise UserInput(f"--checkpoint {asked:.300}: there is no such file or folder; {names} is read, or {RANDOM}.")
    endings = sorted({Path(name).suffix for name in files})
    if path.suffix not in endings:
        raise UserInput(f"--checkpoint {asked:.300}: ends in none of {', '.join(endings)}; {names} is read.")
    return path
