"""The passes that every graph goes through before the toolkit sees it, whoever made it, in their order."""

from __future__ import annotations

from surgery.declaration import Pass
from surgery.decompose_functions import decompose_functions
from surgery.decompose_quantised import decompose_quantised
from surgery.decompose_quantised_operators import decompose_quantised_operators
from surgery.decompose_sequences import decompose_sequences
from surgery.fold_constants import fold_constants
from surgery.fold_dequantised_weights import fold_dequantised_weights
from surgery.normalise_dropout import normalise_dropout
from surgery.normalise_header import normalise_header
from surgery.normalise_passed_outputs import normalise_passed_outputs
from surgery.normalise_scalar_inputs import normalise_scalar_inputs
from surgery.normalise_scalar_outputs import normalise_scalar_outputs
from surgery.normalise_unused_inputs import normalise_unused_inputs
from surgery.rewrite_mask_constants import rewrite_mask_constants
from surgery.rewrite_noise_as_inputs import rewrite_noise_as_inputs
from surgery.rewrite_safe_softmax import rewrite_safe_softmax
from surgery.rewrite_strided_conv import rewrite_strided_conv


def preflight() -> tuple[Pass, ...]:
    """What any ONNX needs to be compiled; a graph that is in order already is changed by none but the last."""
    return (
        decompose_functions(),
        fold_dequantised_weights(),
        fold_constants(),
        decompose_sequences(),
        decompose_quantised_operators(),
        decompose_quantised(),
        normalise_dropout(),
        rewrite_noise_as_inputs(),
        normalise_unused_inputs(),
        normalise_scalar_inputs(),
        normalise_passed_outputs(),
        normalise_scalar_outputs(),
        rewrite_safe_softmax(),
        rewrite_mask_constants(),
        rewrite_strided_conv(),
        normalise_header(),
    )
