"""The one table of all passes, in the order in which they run where a stage lists several."""

from __future__ import annotations

from surgery import fold_with_onnxslim, mask_decoder, normalise_initializers, normalise_static_inputs
from surgery.cuts import every_cut
from surgery.declaration import Declaration
from surgery.preflight import to_hardware, to_operators

CATALOGUE: tuple[Declaration, ...] = (
    normalise_initializers.DECLARATION,
    normalise_static_inputs.DECLARATION,
    mask_decoder.DECLARATION,
    fold_with_onnxslim.DECLARATION,
    *(bound.declaration for bound in (*to_operators(), *every_cut(None), *to_hardware())),
)
"""Every pass of this package: how a foreign graph begins, what stages list themselves, then what every graph goes
through. A test holds the table, the modules and the docs together."""
