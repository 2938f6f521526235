"""What the gates of the duration encoder compare: the voice itself, unpatched, on sentences of its own language.

fp32.cut            the encoder cut out, of any width, against the voice
fp32.padded_nK      the finished graph on K tokens and padding, against the cut on these tokens alone
host.latent         the host half behind the encoder, on what the voice drew, against the voice's latent
host.padded         the same with numbers behind the last token that no engine gives
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import onnx_ir as ir

from contracts.seed import SEED
from converters.piper.duration_host import DurationParts
from converters.piper.duration_seam import find_duration_seam
from converters.piper.duration_sentences import PAD_ID, filling, tokens_feed
from converters.piper.host_half import noise_inputs, seam_values
from converters.piper.names import CONDITIONING, DURATIONS, STATS
from converters.piper.utterances import SENTENCE, phoneme_ids, seeded
from converters.piper.voice import Voice, voice_feed
from converters.stages import Array, Equality, Evidence, Expectation, OpenSession, Session
from surgery.graph import extract, value_named

CUT_DB = HOST_DB = 120.0
"""The same operators on the same values, in another graph: fp32 rounding at most."""

PADDED_DB = 110.0
"""The least that the issue asks of a padded run; the reference has 117 to 130."""

FEW_TOKENS = 17
"""The issue's length between one token and almost all."""

SPARE_TOKENS = 40
"""Behind the last token, for the host half to leave out."""

SPARE_SPREAD = 100.0
"""Of what stands there: more than any of the statistics, which are within 10."""


@dataclass(frozen=True)
class Spoken:
    """One run of the voice up to its decoder: its ids and its inputs, what it drew, and what it gave by the parts'
    names."""

    ids: list[int]
    feed: dict[str, Array]
    noises: dict[str, Array]
    given: dict[str, Array]

    def only(self, *names: str) -> dict[str, Array]:
        """What it gave for `names`."""
        return {name: self.given[name] for name in names}


@dataclass(frozen=True)
class DurationOriginal:
    """A voice whose duration encoder is compared; each graph is opened when a gate needs it, and once.

    Attributes:
        voice: the voice.
        speaker: number of the speaker who speaks.
        parts: its encoder and its host half.
        encode: runs the encoder, of any width.
        open_session: opens the others.
    """

    voice: Voice
    speaker: int
    parts: DurationParts
    encode: Session
    open_session: OpenSession

    @cached_property
    def spoken(self) -> Spoken:
        """The first sentence, spoken by the voice."""
        ids = phoneme_ids(self.voice, SENTENCE)
        feed = voice_feed(self.voice, ids, self.voice.config.scales, self.speaker)
        noises = tuple(noise_inputs(self.voice).values())
        given = self.open_session(_up_to_the_latent(self.voice))(feed)
        return Spoken(ids, feed, {name: given[name] for name in noises}, given)

    @cached_property
    def equalities(self) -> tuple[Equality, ...]:
        """The comparisons of cut and host half, which are the same for every width."""
        spoken, names = self.spoken, tuple(str(value.name) for value in self.parts.host.graph.outputs)
        cut = self.exact(self.feed(spoken.ids, len(spoken.ids)))
        host = self.open_session(self.parts.host)
        behind = {name: array for name, array in spoken.feed.items() if name != self.voice.inputs.ids}
        behind = {**behind, **spoken.noises}
        owed = spoken.only(*names)
        return (
            Equality("fp32.cut", spoken.only(STATS, CONDITIONING), cut, CUT_DB, "the cut against the voice"),
            Equality(
                "host.latent",
                owed,
                _named(host({**cut, **behind}), names),
                HOST_DB,
                "the host half against the voice, on what the voice drew",
            ),
            Equality(
                "host.padded",
                owed,
                _named(host({**{name: _with_spare(array) for name, array in cut.items()}, **behind}), names),
                HOST_DB,
                f"the same, with {SPARE_TOKENS} tokens of noise behind the last",
            ),
        )

    def feed(self, ids: list[int], width: int, *, other: bool = False) -> dict[str, Array]:
        """The encoder's inputs for `ids` in a graph of `width` tokens.

        Args:
            ids: the sentence.
            width: tokens of the graph.
            other: somebody else says it: the next speaker, in the next language; the same one where there is no other.
        """
        return {**tokens_feed(self.voice, ids, width), **self._embedding(int(other))}

    def exact(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        """What the cut gives on the tokens of `feed` alone, without padding."""
        ids, lengths = self.voice.inputs.ids, self.voice.inputs.lengths
        return self.encode({**feed, ids: feed[ids][:, : int(feed[lengths][0])]})

    def _embedding(self, further: int) -> dict[str, Array]:
        """The embedding of who is so many speakers and languages `further` than the one who is asked for."""
        if self.parts.embedding is None:
            return {}
        voice = self.voice
        speaker, language = (self.speaker + further) % voice.speakers, further % voice.languages
        fed = voice_feed(voice, [PAD_ID], voice.config.scales, speaker, language)
        session = self._open_embedding
        return session({str(value.name): fed[str(value.name)] for value in self.parts.embedding.graph.inputs})

    @cached_property
    def _open_embedding(self) -> Session:
        assert self.parts.embedding is not None
        return self.open_session(self.parts.embedding)


def evidence_of(original: DurationOriginal, width: int) -> Evidence:
    """What the gates of the engine of `width` tokens compare."""
    counts = sorted({1, min(FEW_TOKENS, width), max(1, width - 1), width})
    # By turns, two speak: a graph that makes nothing of who speaks is wrong on one of them.
    feeds = [
        original.feed(filling(original.voice, count), width, other=bool(number % 2))
        for number, count in enumerate(counts)
    ]
    return Evidence(
        equalities=original.equalities,
        expectations=tuple(
            Expectation(
                gate=f"fp32.padded_n{count}",
                runs=((feed, original.exact(feed)),),
                minimum_db=PADDED_DB,
                detail=f"the finished graph on {count} of {width} tokens, against the cut on these alone",
            )
            for count, feed in zip(counts, feeds, strict=True)
        ),
    )


def _up_to_the_latent(voice: Voice) -> ir.Model:
    """The voice up to its decoder, with what it computes and draws on the way as outputs; only its seeds are ours."""
    graph, seam, noises = voice.model.graph, voice.seam, noise_inputs(voice)
    drawn = [value_named(graph, name) for name in noises]
    sampled = [value_named(graph, voice.inputs.scales), *drawn]
    latent, mask = value_named(graph, seam.latent), value_named(graph, seam.mask)
    at = find_duration_seam(graph, latent, mask, sampled, str(voice.path))
    outputs = {**seam_values(seam), **noises}
    outputs |= {at.stats: STATS, at.conditioning: CONDITIONING, at.durations: DURATIONS}
    names = voice.inputs.names
    return seeded(extract(voice.model, dict(zip(names, names, strict=True)), outputs))


def _named(given: Mapping[str, Array], names: tuple[str, ...]) -> dict[str, Array]:
    return {name: given[name] for name in names}


def _with_spare(array: Array) -> Array:
    """`array` [1, C, T] with further tokens behind, which mean nothing."""
    drawn = np.random.default_rng(SEED).standard_normal((1, array.shape[1], SPARE_TOKENS))
    return np.concatenate([array, (drawn * SPARE_SPREAD).astype(np.float32)], axis=-1)
