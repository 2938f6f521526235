"""What `--checkpoint` may name for Inflect v2, found: a release's folder, a slice, or random weights.

FOLDER/onnx/decode.onnx, duration.onnx      the published graphs, which are taken where they are there; or in FOLDER
FOLDER/config.json                          sizes, sample rate and hop; beside the graphs it may be missing
FOLDER/model.pth                            the weights; with the config alone
decoder_z.onnx                              a decoder that is cut already, latent and mask to samples: of all else,
                                            nothing is known
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import RANDOM, Source
from contracts.errors import UserInput
from contracts.files import sha256_of, sha256_of_bytes
from contracts.seed import SEED
from converters.hub_places import HUB, repository_name
from converters.inflect.config import CONFIG_NAME
from converters.stages import Checkpoint, FetchHub
from models.inflect.config import MICRO, NANO, InflectConfig
from models.inflect.stand_in import RECIPE

RANDOM_NANO = f"{RANDOM}-nano"
STAND_INS: dict[str, tuple[str, InflectConfig]] = {RANDOM: ("Micro", MICRO), RANDOM_NANO: ("Nano", NANO)}
"""The words that stand for a release's sizes with seeded weights, in the place of a checkpoint."""

DECODE_NAME, DURATION_NAME, WEIGHTS_NAME, SLICE_NAME = "decode.onnx", "duration.onnx", "model.pth", "decoder_z.onnx"
GRAPHS_FOLDER = "onnx"

_GRAPH_FILES = tuple(f"{folder}{name}" for folder in (f"{GRAPHS_FOLDER}/", "") for name in (DECODE_NAME, DURATION_NAME))
"""What is fetched of a repository first. Published graphs hold their weights; data in files beside them would be links
out of the folder, in a hub's cache, and such are not followed."""

_HOLDS = (
    f"a folder of Inflect v2 holds {GRAPHS_FOLDER}/{DECODE_NAME} and {GRAPHS_FOLDER}/{DURATION_NAME}, or "
    f"{WEIGHTS_NAME} and {CONFIG_NAME}"
)

_NOTE = (
    "the weights are seeded random numbers at Inflect-{name}-v2's sizes: a stand-in for a checkpoint, nobody's voice; "
    "--checkpoint FOLDER names a real one"
)

_TORCH = frozenset({"torch"})
"""What traces graphs of weights."""


class Kind(enum.Enum):
    """What a checkpoint consists of."""

    GRAPHS = "graphs"
    WEIGHTS = "weights"
    SLICE = "slice"


@dataclass(frozen=True)
class Found:
    """A checkpoint's files.

    Attributes:
        kind: what they are.
        name: what the release is called.
        files: of graphs `decode.onnx`, `duration.onnx` and the config if it is there; of weights `model.pth` and the
            config; of a slice itself.
    """

    kind: Kind
    name: str
    files: tuple[Path, ...]

    @property
    def config(self) -> Path | None:
        """The `config.json` among the files."""
        return next((path for path in self.files if path.name == CONFIG_NAME), None)


def locate(text: str, fetch_hub: FetchHub) -> Checkpoint:
    """The checkpoint that a user names: `random`, `random-nano`, a release's folder or repository, or a slice.

    Raises:
        UserInput: it is none of these, or a file is missing; one sentence.
    """
    if text in STAND_INS:
        name, config = STAND_INS[text]
        description = f"inflect decoder, stand-in {RECIPE}, seed {SEED}, {config}"
        source = Source(text, sha256_of_bytes(description.encode()), RANDOM)
        return Checkpoint(Path(text), source, note=_NOTE.format(name=name), files=(), extras=_TORCH)
    path = _fetched(text, fetch_hub) if text.startswith(HUB) else Path(text)
    found = find_files(path)
    if found.kind is Kind.SLICE:
        source = Source(found.files[0].name, sha256_of(found.files[0]), "checkpoint")
    else:
        digests = "".join(f"{sha256_of(file)}  {file.name}\n" for file in found.files)
        source = Source(f"{found.name}{found.files[0].suffix}", sha256_of_bytes(digests.encode()), "checkpoint")
    # The published graphs are read as they are; of weights, graphs are traced.
    return Checkpoint(path, source, files=found.files, extras=_TORCH if found.kind is Kind.WEIGHTS else frozenset())


def is_slice(checkpoint: Checkpoint) -> bool:
    """Whether a located checkpoint is a decoder that is cut already."""
    return checkpoint.source.kind != RANDOM and find_files(checkpoint.path).kind is Kind.SLICE


def find_files(path: Path) -> Found:
    """The files of the checkpoint `path`: a folder, or one of its files, or a slice.

    Raises:
        UserInput: there is nothing there, or a file is missing; it is named.
    """
    if not path.exists():
        raise UserInput(f"{path}: there is no such file or folder; {_HOLDS}.")
    if not path.is_dir():
        if path.suffix == ".onnx" and path.name not in (DECODE_NAME, DURATION_NAME):
            return Found(Kind.SLICE, path.stem, (path,))
        if path.name not in (DECODE_NAME, DURATION_NAME, WEIGHTS_NAME, CONFIG_NAME):
            raise UserInput(f"{path}: is no checkpoint of Inflect v2; {_HOLDS}.")
        path = path.parent
    root = path.parent if path.name == GRAPHS_FOLDER and not (path / WEIGHTS_NAME).is_file() else path
    name = repository_name(root) or "inflect"
    config = tuple(file for file in (root / CONFIG_NAME, path / CONFIG_NAME) if file.is_file())[:1]
    places = [folder for folder in (root / GRAPHS_FOLDER, path) if folder.is_dir()]
    for folder in places:
        graphs = (folder / DECODE_NAME, folder / DURATION_NAME)
        if all(file.is_file() for file in graphs):
            return Found(Kind.GRAPHS, name, (*graphs, *config))
    weights = root / WEIGHTS_NAME
    if weights.is_file() and config:
        return Found(Kind.WEIGHTS, name, (weights, *config))
    cut = root / SLICE_NAME
    if cut.is_file():
        return Found(Kind.SLICE, name, (cut,))
    raise UserInput(f"{path}: lacks {_missing(places, weights, bool(config))}; {_HOLDS}.")


def _fetched(text: str, fetch_hub: FetchHub) -> Path:
    """The snapshot of the repository `text`: the published graphs where it has them, or else the weights."""
    for patterns in ((*_GRAPH_FILES, CONFIG_NAME), (WEIGHTS_NAME, CONFIG_NAME)):
        folder = fetch_hub(text, patterns)
        try:
            find_files(folder)
        except UserInput:
            continue
        return folder
    raise UserInput(f"{text:.200}: is no repository of Inflect v2; {_HOLDS}.")


def _missing(places: list[Path], weights: Path, config: bool) -> str:
    """The files that would complete what is there, or all of them."""
    for folder in places:
        for there, other in ((DECODE_NAME, DURATION_NAME), (DURATION_NAME, DECODE_NAME)):
            if (folder / there).is_file():
                return f"{other} beside {there}"
    if weights.is_file():
        return f"{CONFIG_NAME} beside {WEIGHTS_NAME}"
    return f"{WEIGHTS_NAME} beside {CONFIG_NAME}" if config else "its files"
