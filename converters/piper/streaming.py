"""A voice in two files: piper_train's `export_onnx_streaming` writes `encoder.onnx` and `decoder.onnx`, no JSON.

    encoder: the voice's inputs -> z, y_mask, and g of a voice of several speakers
    decoder: z, y_mask, g       -> samples

They are cut at the seam where we cut, so put together again they are the voice that Piper writes into one file, and go
the same road. Which half a file is its graph tells; where the other one lies, its name. Voices are published as a
folder of the two with a `config.json`, the same JSON that other voices have beside them.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from contracts.contract import Source
from contracts.errors import Refusal, UserInput
from contracts.files import sha256_of
from converters.hub_places import check_at_hand
from converters.onnx_file import load_external, read_onnx
from converters.onnx_join import joined
from converters.piper.config import config_path
from converters.stages import Checkpoint, FetchHub
from surgery.decompose_functions import decompose_functions

ENCODER, DECODER = "encoder", "decoder"
"""The halves, and what their files are called."""

CONFIG = "config.json"
"""What published folders call the voice's JSON."""

_SEAM = (2, 3)
"""How many values stand at the seam: the latent, its mask, and the embedding of a voice of several speakers."""


def locate(text: str, fetch_hub: FetchHub) -> Checkpoint:
    """The checkpoint that a user names: a voice's file, either half of a streaming voice, or the folder of its halves.

    A streaming voice is called after its folder where its files have the exporter's names, which all of them have.

    Raises:
        UserInput: there is no such file.
    """
    check_at_hand(text)
    path = Path(text)
    if path.is_dir() and (path / f"{DECODER}.onnx").is_file():
        path = path / f"{DECODER}.onnx"
    if not path.is_file():
        folder = f"is a folder without a streaming voice's {DECODER}.onnx; name a voice's .onnx file in it"
        raise UserInput(f"--checkpoint {path}: {folder if path.is_dir() else 'there is no such file'}.")
    partner = _partner(path)
    if partner is None or not partner.is_file():
        return Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"))
    own_names = path.stem in (ENCODER, DECODER)
    name = path.resolve().parent.name if own_names else path.name
    beside = pair_config(path, partner)
    files = (path, partner) if beside is None else (path, partner, beside)
    return Checkpoint(path, Source(name or path.name, sha256_of(path), "checkpoint"), files=files)


def read_voice(path: Path) -> tuple[ir.Model, Path]:
    """The voice in the file `path`, of one graph, whole; and where its JSON is expected.

    Raises:
        UserInput: a file is no ONNX, the other half of a streaming voice is missing, or the two do not fit.
        Refusal: a part of a file is not supported (`read_onnx`).
    """
    model = _read(path)
    half = _half(model)
    if half is None:
        return model, config_path(path)
    wanted = ENCODER if half == DECODER else DECODER
    partner = _partner(path)
    if partner is None:
        raise UserInput(
            f"{path}: is the {half} half of a streaming voice, and its name does not tell where the {wanted} half is: "
            f"call the two {ENCODER}.onnx and {DECODER}.onnx, in one folder."
        )
    if not partner.is_file():
        raise UserInput(
            f"{path}: is the {half} half of a streaming voice, and {partner.name}, its {wanted} half, is missing: put "
            "it beside it, or export the voice as one file with piper's export_onnx."
        )
    other = _read(partner)
    if _half(other) != wanted:
        raise UserInput(
            f"{path}: is the {half} half of a streaming voice, and {partner.name} is not its {wanted} half: put the "
            f"file with that beside it, or export the voice as one file with piper's export_onnx."
        )
    encoder, decoder = (model, other) if half == ENCODER else (other, model)
    return _whole(encoder, decoder, path, partner), pair_config(path, partner) or config_path(path)


def pair_config(path: Path, partner: Path) -> Path | None:
    """The JSON of a streaming voice: of the name of either half, or its folder's, or the only one of a voice there."""
    named = [config_path(path), config_path(partner), path.with_name(CONFIG)]
    only = sorted(path.parent.glob("*.onnx.json"))
    return next((file for file in (*named, *(only if len(only) == 1 else ())) if file.is_file()), None)


def _partner(path: Path) -> Path | None:
    """Where the other half of a streaming voice is, by the name of the one; None where that does not tell."""
    for own, other in ((ENCODER, DECODER), (DECODER, ENCODER)):
        head, found, tail = path.name.rpartition(own)
        if found:
            return path.with_name(f"{head}{other}{tail}")
    return None


def _read(path: Path) -> ir.Model:
    # Its parts go into other files, where external data would be lost.
    model = read_onnx(path)
    load_external(model)
    # Newer exporters leave functions, and parts are cut out of one graph.
    return decompose_functions().rewrite(model).model if model.functions else model


def _half(model: ir.Model) -> str | None:
    """Which half of a streaming voice `model` is, by its inputs and operators; None where it is something else."""
    graph = model.graph
    fed = [value for value in graph.inputs if value.name not in graph.initializers]
    upsamples = any(node.op_type == "ConvTranspose" for node in graph)
    draws = any(node.op_type.startswith("Random") for node in graph)
    takes_ids = any(value.dtype == ir.DataType.INT64 for value in fed)
    if takes_ids and draws and not upsamples and len(graph.outputs) in _SEAM:
        return ENCODER
    shapes = [tuple(value.shape or ()) for value in fed if value.dtype == ir.DataType.FLOAT]
    at_seam = len(shapes) == len(fed) in _SEAM and all(len(shape) == 3 for shape in shapes)  # [1, C, N]
    if upsamples and not draws and at_seam and any(shape[1] == 1 for shape in shapes):
        return DECODER
    return None


def _whole(encoder: ir.Model, decoder: ir.Model, path: Path, partner: Path) -> ir.Model:
    given = [value for value in encoder.graph.outputs if value.name is not None]
    taken = [value for value in decoder.graph.inputs if value.name not in decoder.graph.initializers]
    if len(given) != len(taken):
        wanted, there = (", ".join(str(value.name) for value in values) for values in (taken, given))
        raise UserInput(
            f"{path} and {partner.name} do not fit: the decoder takes {wanted}, the encoder gives {there}; export both "
            "from one checkpoint."
        )
    names = {value.name: value for value in given}
    by_name = all(value.name in names for value in taken)
    pairs = [(names[value.name] if by_name else other, value) for value, other in zip(taken, given, strict=True)]
    for source, value in pairs:
        for size, wanted_size in zip(source.shape or (), value.shape or (), strict=False):
            if isinstance(size, int) and isinstance(wanted_size, int) and size != wanted_size:
                raise UserInput(
                    f"{path} and {partner.name} do not fit: the encoder gives {source.name} {_sizes(source)}, the "
                    f"decoder takes it as {_sizes(value)}; export both from one checkpoint."
                )
    try:
        whole, _ = joined(encoder, decoder, {str(value.name): str(source.name) for source, value in pairs})
    except ValueError as error:
        raise Refusal(
            f"{path} and {partner.name} cannot be put together, for they have {error}; export both alike, from one "
            "checkpoint."
        ) from error
    return whole


def _sizes(value: ir.Value) -> list[int | str | None]:
    return [size if isinstance(size, int) else size.value for size in value.shape or ()]
