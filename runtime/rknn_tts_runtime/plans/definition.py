"""What an execution plan may say: families, their components, implementations, artifact roles and params, as data.

The one definition of it: `reading` checks plans against it, `schema` makes the JSON Schema of it, `rknn-tts plan`
writes by it, and the table in docs/plans.md is held to it. It is the table of the reference application ("Component
execution plans"), and what goes beyond that is marked so: the roles `short` and `host`, ladders of windows, and the
stages of CosyVoice2.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Union

RKNN, GGML, NEON, DEFAULT = "rknn", "ggml", "neon", "default"

SUFFIX = ".exec_plan"
"""How the name of a session option ends that holds a plan."""

GGML_BACKENDS = ("cpu", "cuda", "vulkan", "metal", "best")
"""What the reference application's `--backend` takes. Which of them is the session's is not known here."""

NEON_BACKENDS = ("cpu",)
"""The reference's table: NEON needs an AArch64 session on the CPU."""

NO_ENGINE = r"(?!)"
"""`made_for` of a file that is no engine, and that a person makes and names: it matches no role."""

ParamValue = Union[int, bool]


@dataclass(frozen=True)
class Role:
    """A named artifact.

    Attributes:
        name: its key in `artifacts`.
        meaning: what the file is, in a few words.
        made_for: a regular expression that all of an engine's role in its manifest matches ("" where it has none);
            None where the file is no engine but the stage's host half.
        ladder: whether several files may stand there, commas between them.
        beyond: whether the reference application does not know the role.
        beyond_ladder: whether it knows the role, but takes one file there.
    """

    name: str
    meaning: str
    made_for: str | None
    ladder: bool = False
    beyond: bool = False
    beyond_ladder: bool = False

    @property
    def is_engine(self) -> bool:
        """Whether its files are engines."""
        return self.made_for not in (None, NO_ENGINE)

    def takes(self, role: str | None) -> bool:
        """Whether an engine was made for it whose manifest has the role `role`."""
        return self.made_for is not None and re.fullmatch(self.made_for, role or "") is not None


@dataclass(frozen=True)
class Param:
    """A setting of an implementation.

    Attributes:
        name: its key in `params`.
        kind: "integer", from `least`, or "boolean".
        default: where a plan leaves it out.
        meaning: what it is, in a few words.
        least: see `kind`.
        planned: what `rknn-tts plan` writes; None: it leaves it out.
    """

    name: str
    kind: str
    default: ParamValue
    meaning: str
    least: int = 0
    planned: ParamValue | None = None


@dataclass(frozen=True)
class Implementation:
    """One way to run a component.

    Attributes:
        name: "rknn" is ours; all others are the host application's.
        roles: files that it takes.
        needs: groups of role names; of each group one at least must be given.
        params: its settings.
        backends: what `backend` may name; nothing where it must be left out.
    """

    name: str
    roles: tuple[Role, ...] = ()
    needs: tuple[tuple[str, ...], ...] = ()
    params: tuple[Param, ...] = ()
    backends: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComponentDefinition:
    """A part of a model that a plan places. Of a component with engines it is the stage's name in their manifests."""

    name: str
    implementations: tuple[Implementation, ...]

    def implementation(self, name: str) -> Implementation | None:
        """The one of this name; `default` is one of every component."""
        return next((one for one in self.implementations if one.name == name), None)


@dataclass(frozen=True)
class FamilyDefinition:
    """The plan of one family.

    Attributes:
        family: as manifests name it.
        option: the session option that holds the plan.
        components: in the order of the table.
        one_source: whether engines of all its components are made of one checkpoint file.
    """

    family: str
    option: str
    components: tuple[ComponentDefinition, ...]
    one_source: bool = False

    def component(self, name: str) -> ComponentDefinition | None:
        """The one of this name."""
        return next((one for one in self.components if one.name == name), None)


_WINDOWS = Role("main", "engine, or one a window", r"(w\d+)?", ladder=True, beyond_ladder=True)
_HOST = Role("host", "the host half, an ONNX", made_for=None, beyond=True)
_GGML = Implementation(GGML, backends=GGML_BACKENDS)
_NEON = Implementation(NEON, backends=NEON_BACKENDS)
_DEFAULT = Implementation(DEFAULT, backends=GGML_BACKENDS)


def _placed(
    name: str, *roles: Role, needs: tuple[str, ...] = ("main",), params: tuple[Param, ...] = ()
) -> ComponentDefinition:
    rknn = Implementation(RKNN, roles, (needs,), params)
    return ComponentDefinition(name, (_DEFAULT, _GGML, rknn))


def _main(made_for: str, meaning: str, ladder: bool = False, beyond: bool = False) -> Role:
    return Role("main", meaning, made_for, ladder, beyond)


SEAM_FRAMES = 8
"""Of Kokoro's windows, 0.1 s. Each is normalised by itself, so that samples jump where one ends: at a seam without a
fade their second difference was up to twice the largest around it, with a fade of 4 frames or more below it (docs of
Kokoro, measured on the default checkpoint)."""

FAMILIES = (
    FamilyDefinition(
        "piper",
        "piper_tts.exec_plan",
        (
            _placed("decoder", _WINDOWS, _HOST),
            _placed("duration_encoder", _main(r"n\d+", "engine, one a width", ladder=True), _HOST),
            ComponentDefinition("duration_flows", (_DEFAULT, _GGML)),
        ),
        one_source=True,
    ),
    FamilyDefinition(
        "kokoro",
        "kokoro_tts.exec_plan",
        (
            _placed(
                "generator",
                _main("full", "engine for whole windows"),
                Role("short", "engine for utterances shorter than a window", "short", beyond=True),
                Role("full_length", "an ONNX for any number of frames, which gain needs", NO_ENGINE, beyond=True),
                _HOST,
                params=(
                    Param(
                        "overlap",
                        "integer",
                        0,
                        "frames that neighbouring windows both emit and fade over",
                        planned=SEAM_FRAMES,
                    ),
                    Param("gain", "boolean", False, "each window as loud as a decode of all frames at once"),
                ),
            ),
        ),
    ),
    FamilyDefinition(
        "qwen3",
        "qwen3_tts.exec_plan",
        (
            _placed(
                "speech_decoder",
                _main("main", "engine of the large step"),
                Role("first", "engine of the small step, that a stream begins with", "first"),
                Role("window", "engine that decodes a left context anew with each event", "window"),
                _HOST,
            ),
        ),
    ),
    FamilyDefinition("sanotts", "sanotts.exec_plan", (ComponentDefinition("decoder", (_DEFAULT, _GGML, _NEON)),)),
    FamilyDefinition(
        "inflect",
        "inflect_v2.exec_plan",
        (_placed("decoder", _WINDOWS, _HOST),),
    ),
    FamilyDefinition(
        "cosyvoice3",
        "cosyvoice3.exec_plan",
        (_placed("flow", _main(r"s\d+", "engine, one a length", ladder=True)),),
    ),
    FamilyDefinition(
        "cosyvoice2",
        "cosyvoice2.exec_plan",
        (
            _placed("speaker", _main(r"t\d+", "engine, one a length", ladder=True, beyond=True)),
            _placed(
                "flow_encoder",
                _main("steady", "engine of a step", beyond=True),
                Role("first", "engine of the step that waits for the fewest tokens", "first", beyond=True),
                _HOST,
            ),
            _placed(
                "flow_estimator",
                Role("step", "engine of a stream's step", "step", beyond=True),
                _main(r"s\d+", "engine for whole utterances, one a length", ladder=True, beyond=True),
                _HOST,
                needs=("step", "main"),
            ),
            _placed("f0", _main(r"b\d+", "engine, one a bucket of frames", ladder=True, beyond=True)),
            _placed("hift", _main(r"b\d+", "engine, one a bucket of frames", ladder=True, beyond=True), _HOST),
            _placed("speech_head", _main("", "engine", beyond=True)),
        ),
    ),
)
"""In the order of the reference's table. CosyVoice2 has no place in that."""


def family_of(name: str) -> FamilyDefinition | None:
    """The family that manifests call `name`."""
    return next((one for one in FAMILIES if one.family == name), None)


def family_of_option(option: str) -> FamilyDefinition | None:
    """The family whose plan the session option `option` holds."""
    return next((one for one in FAMILIES if one.option == option), None)
