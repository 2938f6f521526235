"""The one table of all passes, in the order in which they run where a stage lists several."""

from __future__ import annotations

from surgery import fold_with_onnxslim, mask_decoder, normalise_header, normalise_static_inputs
from surgery.declaration import Declaration

CATALOGUE: tuple[Declaration, ...] = (
    normalise_static_inputs.DECLARATION,
    mask_decoder.DECLARATION,
    fold_with_onnxslim.DECLARATION,
    normalise_header.DECLARATION,
)
"""Every pass of this package; a test holds the table, the modules and the docs together."""
