"""The file that holds every layer of a build (`build-logs/NAME.layers.json`): reading it, and finding it."""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath

from contracts.manifest import Layers, Manifest
from contracts.serial import from_json, parse_json
from cost.summary import summarise_layers
from logs.layer_table import Layer, LayerTable


def read_layers(path: Path) -> tuple[Layer, ...]:
    """The layers in the file `path`.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no layers, or figures that no build has; the message ends as a clause.
    """
    data = parse_json(path.read_text("utf-8"))
    if not isinstance(data, list):
        raise ValueError("a list of layers was expected")
    layers = tuple(from_json(Layer, item, f"layer {number}") for number, item in enumerate(data))
    for number, layer in enumerate(layers):
        figures = (layer.cycles, layer.cycles_ddr, layer.cycles_npu, layer.rw_kb)
        if not all(0 <= figure < math.inf for figure in figures):
            raise ValueError(f"layer {number}: {layer.cycles} cycles and {layer.rw_kb:g} KB are no figures of a build")
    return layers


def layers_of(manifest: Manifest | None, beside: Path, workdir: Path) -> tuple[tuple[Layer, ...], str]:
    """The layers that `manifest` names, and what is amiss with them as a sentence; with a sentence, no layers.

    The name is relative to the folder that the build ran in: the present one, or one above the manifest.

    Args:
        manifest: the manifest; without one, there is nothing to find.
        beside: its file.
        workdir: where `build-logs/` are looked for first.
    """
    if manifest is None or manifest.layers is None:
        return (), ""
    if manifest.layers.file is None:
        return (), "The manifest names no layer table: only its sums are known."
    name = PurePosixPath(manifest.layers.file)
    if name.is_absolute() or ".." in name.parts:
        return (), f"The layers are not read: {name} lies outside the folders of a build."
    found = next((f / name for f in (workdir, *beside.resolve().parents) if (f / name).is_file()), None)
    if found is None:
        return (), (
            f"The layer table {name} is not at hand: only its sums are known. Run the command in the folder that the "
            "engine was built in; if it was cleaned away, build again there with --force."
        )
    try:
        layers = read_layers(found)
    except (OSError, ValueError) as error:
        return (), f"The layer table {found} cannot be read ({error})."
    if not _same_build(sums_of(layers), manifest.layers):
        return (), f"The layer table {found} is of another build: only the manifest's sums are shown."
    return layers, ""


def sums_of(layers: tuple[Layer, ...]) -> Layers:
    """What a manifest would keep of `layers`."""
    return summarise_layers(LayerTable(layers, None, None))


def _same_build(found: Layers, told: Layers) -> bool:
    same_traffic = math.isclose(found.rw_kb, told.rw_kb)
    return (found.count, found.cycles) == (told.count, told.cycles) and same_traffic
