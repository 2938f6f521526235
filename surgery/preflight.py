"""The passes that every graph goes through before the toolkit sees it, whoever made it, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from surgery.cuts import cuts
from surgery.declaration import Pass
from surgery.decompose_functions import decompose_functions
from surgery.decompose_int32_casts import decompose_int32_casts
from surgery.decompose_layer_norm_statistics import decompose_layer_norm_statistics
from surgery.decompose_missing_kernels import decompose_missing_kernels
from surgery.decompose_negative_pads import decompose_negative_pads
from surgery.decompose_quantised import decompose_quantised
from surgery.decompose_quantised_operators import decompose_quantised_operators
from surgery.decompose_sequences import decompose_sequences
from surgery.fold_constants import fold_constants
from surgery.fold_dequantised_weights import fold_dequantised_weights
from surgery.fold_empty_parts import fold_empty_parts
from surgery.normalise_auto_pad import normalise_auto_pad
from surgery.normalise_clip_bounds import normalise_clip_bounds
from surgery.normalise_constant_names import normalise_constant_names
from surgery.normalise_defaults import normalise_defaults
from surgery.normalise_double import normalise_double
from surgery.normalise_dropout import normalise_dropout
from surgery.normalise_empty_slots import normalise_empty_slots
from surgery.normalise_float32 import normalise_float32
from surgery.normalise_header import normalise_header
from surgery.normalise_integer_inputs import normalise_integer_inputs
from surgery.normalise_layer_norm import normalise_layer_norm
from surgery.normalise_mean_axes import normalise_mean_axes
from surgery.normalise_negative_axes import normalise_negative_axes
from surgery.normalise_opset import normalise_opset
from surgery.normalise_passed_outputs import normalise_passed_outputs
from surgery.normalise_scalar_inputs import normalise_scalar_inputs
from surgery.normalise_scalar_outputs import normalise_scalar_outputs
from surgery.normalise_unused_inputs import normalise_unused_inputs
from surgery.rewrite_long_broadcast import rewrite_long_broadcast
from surgery.rewrite_long_pad import rewrite_long_pad
from surgery.rewrite_long_pool import rewrite_long_pool
from surgery.rewrite_long_transposed_conv import rewrite_long_transposed_conv
from surgery.rewrite_mask_constants import rewrite_mask_constants
from surgery.rewrite_noise_as_inputs import rewrite_noise_as_inputs
from surgery.rewrite_recurrent_outputs import rewrite_recurrent_outputs
from surgery.rewrite_relative_attention import rewrite_relative_attention
from surgery.rewrite_reverse_sequence import rewrite_reverse_sequence
from surgery.rewrite_safe_softmax import rewrite_safe_softmax
from surgery.rewrite_self_products import rewrite_self_products
from surgery.rewrite_shared_gates import rewrite_shared_gates
from surgery.rewrite_strided_average_pool import rewrite_strided_average_pool
from surgery.rewrite_strided_conv import rewrite_strided_conv
from surgery.rewrite_wide_dilation import rewrite_wide_dilation
from surgery.rewrite_zeroed_absolutes import rewrite_zeroed_absolutes


def preflight(
    target: str | None = None, own: Sequence[Pass] = (), chosen: Sequence[Pass] | None = None
) -> tuple[Pass, ...]:
    """What runs on every graph: what it needs to be compiled, and the cuts that pay on `target`, in between.

    Args:
        target: None for what pays on every target.
        own: a stage's own cuts, which run before the others. One that runs on every graph too, which a stage lists
            in another form, runs in that form only.
        chosen: the cuts, in their order, where it is known which of them pay on this graph.
    """
    stated = {bound.name for bound in own}
    first = (bound for bound in to_operators() if bound.name not in stated)
    return (*first, *own, *(cuts(target) if chosen is None else chosen), *to_hardware())


def owed() -> tuple[Pass, ...]:
    """What any ONNX needs to be compiled; a graph that is in order already is changed in its header only.

    They know no target: what one target cannot hold is rewritten for all.
    """
    return (*to_operators(), *to_hardware())


def to_operators() -> tuple[Pass, ...]:
    """What makes of any ONNX one of operators that the toolkit has, in the forms that it gets right."""
    return (
        decompose_functions(),
        fold_dequantised_weights(),
        normalise_opset(),
        fold_constants(),
        decompose_sequences(),
        rewrite_noise_as_inputs(),
        normalise_double(),
        normalise_float32(),
        decompose_quantised_operators(),
        decompose_quantised(),
        normalise_dropout(),
        normalise_empty_slots(),
        rewrite_recurrent_outputs(),
        normalise_defaults(),
        fold_empty_parts(),
        decompose_negative_pads(),
        normalise_negative_axes(),
        rewrite_reverse_sequence(),
        normalise_auto_pad(),
        rewrite_safe_softmax(),
        decompose_missing_kernels(),
        decompose_int32_casts(),
        normalise_mean_axes(),
        rewrite_self_products(),
        rewrite_shared_gates(),
        rewrite_relative_attention(),
        rewrite_mask_constants(),
        normalise_clip_bounds(),
        normalise_unused_inputs(),
        normalise_integer_inputs(),
        normalise_scalar_inputs(),
        normalise_passed_outputs(),
        normalise_scalar_outputs(),
    )


def to_hardware() -> tuple[Pass, ...]:
    """What makes a graph fit the hardware's fields; behind the cuts, which add operators of their own."""
    return (
        decompose_layer_norm_statistics(),
        normalise_layer_norm(),
        rewrite_strided_average_pool(),
        rewrite_strided_conv(),
        rewrite_long_transposed_conv(),
        rewrite_wide_dilation(),
        rewrite_long_pool(),
        rewrite_zeroed_absolutes(),
        rewrite_long_broadcast(),
        rewrite_long_pad(),
        normalise_header(),
        normalise_constant_names(),
    )
