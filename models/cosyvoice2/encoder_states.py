"""What a streaming step of the flow encoder remembers, and the names of what it takes and gives. No torch.

Every slot of the keys and values is a token's (a frame's behind the upsampling); the newest stand at the end and the
oldest are dropped. `valid` is 1 where a slot holds a real token, so that the host keeps no counters.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.cosyvoice2.encoder_config import BEHIND, STACKS, UP_BEHIND, UPSAMPLING, EncoderConfig, Shape

EMBEDDED, MASK, MEAN = "embedded", "mask", "mu"
"""Embeddings of the tokens, which of them are real, and the mean of the mel frames."""

OUT = "_out"
"""Behind a state's name: what is given on."""

VALID, AHEAD, UP = "valid", "look_ahead", "up"
"""States: which slots are real; the ends of the two causal convolutions' inputs."""


@dataclass(frozen=True)
class StepSizes:
    """Sizes of a step.

    Attributes:
        chunk: tokens that it takes.
        look_ahead: tokens behind them that it sees.
        history: slots of tokens that it remembers, its own among them.
    """

    chunk: int
    look_ahead: int
    history: int

    @property
    def seen(self) -> int:
        """Tokens that it is given."""
        return self.chunk + self.look_ahead


def input_shapes(config: EncoderConfig, sizes: StepSizes) -> dict[str, Shape]:
    """Shapes of a step's inputs by name, its states behind the others."""
    return {
        EMBEDDED: (1, config.width, 1, sizes.seen),
        MASK: (1, 1, 1, sizes.seen),
        **state_shapes(config, sizes.history),
    }


def state_shapes(config: EncoderConfig, history: int) -> dict[str, Shape]:
    """Shapes of the states by the names of the inputs."""
    shapes: dict[str, Shape] = {
        VALID: (1, 1, 1, history),
        AHEAD: (1, config.width, 1, BEHIND),
        UP: (1, config.width, 1, UP_BEHIND),
    }
    for stack, count, factor in zip(STACKS, (config.blocks, config.up_blocks), (1, UPSAMPLING), strict=True):
        for number in range(count):
            for kept in kept_of(stack, number):
                shapes[kept] = (config.heads, config.head_dim, 1, factor * history)
    return shapes


def kept_of(stack: str, number: int) -> tuple[str, str]:
    """The states of a block: its keys and its values."""
    before = "up_" if stack == STACKS[1] else ""
    return f"{before}keys_{number}", f"{before}values_{number}"


def output_shapes(config: EncoderConfig, sizes: StepSizes) -> dict[str, Shape]:
    """Shapes of a step's outputs by name, the states behind the mean."""
    states = {name + OUT: shape for name, shape in state_shapes(config, sizes.history).items()}
    return {MEAN: (1, config.mel, 1, UPSAMPLING * sizes.chunk), **states}
