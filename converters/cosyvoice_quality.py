"""The figures that CosyVoice's flows are judged by beside a ratio in dB, as the reference reports them. No torch."""

from __future__ import annotations

from contracts.quality import Quality

REFERENCE_COSINE = 0.999989
"""Of a mel spectrogram by the reference's board in fp16 to the host's (reference, CosyVoice2 on RK3588, quality)."""

REFERENCE_L1 = 0.004
"""Its mean difference of 0.016937 as a share of the values: with that cosine their root mean square is about 4.5, and
their mean absolute value about 4."""

OTHER_COSINE, OTHER_L1 = 0.9999, 0.01
"""Of a flow that the reference reports no figure of: a graph of 40 dB has 0.99995 and about 0.009."""


def mel_figures(
    output: str, least_cosine: float, most_l1: float, what: str, mask: str | None = None
) -> tuple[Quality, ...]:
    """The figures of a spectrogram, or of a velocity that a solver makes one of.

    Args:
        output: the engine's output.
        least_cosine, most_l1: what passes; the mean absolute difference itself is measured, for numbers that are not
            log mel values of a voice have no such scale.
        what: the output in a few words ("the velocity").
        mask: the input that is 0 at padding.
    """
    return (
        Quality("mel_cosine", output, least_cosine, mask, remark=f"of {what}"),
        Quality("mel_l1_relative", output, most_l1, mask, remark=f"of {what}"),
        Quality("mel_l1", output, None, mask, remark=f"of {what}; the reference's board has 0.016937 on a voice"),
    )
