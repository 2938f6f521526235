"""A slice that comes alone (`compile decoder_z.onnx`): told by its structure, and what it is judged on."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from converters.inflect.evidence import drawn_latent
from converters.inflect.seam import find_slice
from converters.stages import Array, Probe

MOST_CHANNELS, MOST_FRAMES = 1024, 4096
"""Of a latent that is drawn: five times the widest model's, and sixteen times the usual window. A file may claim any
size."""

NOTE = (
    "By its structure it is a VITS decoder cut at its seam, latent and mask to samples. The check is degraded: one "
    "window-length latent of drawn numbers, the mask at one, decoded by the slice against itself; as a checkpoint, the "
    "voice or the release that it was cut from is compared with its full-length decode."
)


def probe_of(model: ir.Model) -> Probe | None:
    """One window of drawn numbers, and a mask of ones, of a slice of fixed size; None of any other graph.

    Any numbers for the mask would make a decoder that is masked at every rate overflow.
    """
    inputs = {str(value.name): value for value in model.graph.inputs}
    try:
        seam = find_slice(model, "a foreign graph")
    except Refusal:
        return None
    if seam.frames is None or seam.frames > MOST_FRAMES or seam.channels > MOST_CHANNELS:
        return None
    said = drawn_latent(seam.channels, seam.frames)
    feed: dict[str, Array] = {}
    for name, array in ((seam.latent, said.latent), (seam.mask, said.mask)):
        dtype = inputs[name].dtype
        if dtype is None or not dtype.is_floating_point():
            return None
        feed[name] = np.asarray(array, dtype.numpy())
    return Probe(feed, NOTE)
