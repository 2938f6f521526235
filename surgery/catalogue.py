"""The one table of all passes, in the order in which they run where a stage lists several."""

from __future__ import annotations

from surgery import (
    fold_with_onnxslim,
    mask_decoder,
    normalise_initializers,
    normalise_static_inputs,
    rewrite_interface_axes,
    rewrite_sines,
    trim_decoder,
)
from surgery.cuts import every_cut
from surgery.declaration import Declaration
from surgery.preflight import to_hardware, to_operators

CATALOGUE: tuple[Declaration, ...] = (
    normalise_initializers.DECLARATION,
    normalise_static_inputs.DECLARATION,
    mask_decoder.DECLARATION,
    trim_decoder.DECLARATION,
    fold_with_onnxslim.DECLARATION,
    rewrite_interface_axes.DECLARATION,
    *(bound.declaration for bound in to_operators()),
    rewrite_sines.DECLARATION,
    *(bound.declaration for bound in (*every_cut(None), *to_hardware())),
)
"""Every pass of this package: how a foreign graph begins, what stages list themselves, then what every graph goes
through, and among it, where they belong, sines, whose arguments only a stage knows. A test holds the table, the modules
and the docs together."""
