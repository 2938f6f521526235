"""`check`: whether a plan, its files and this machine go together, and what the engines take of the address space.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Mapping

from rknn_tts_runtime.aperture_budget import BUDGET_BYTES, as_mib, cost_of
from rknn_tts_runtime.backends.engine import Backend
from rknn_tts_runtime.board import soc
from rknn_tts_runtime.commands.chosen_backend import NPU, add_backend_arguments, chosen_backend
from rknn_tts_runtime.commands.ladder_lines import ladder_lines
from rknn_tts_runtime.commands.output import complain, tell
from rknn_tts_runtime.commands.utterance import add_plan_arguments
from rknn_tts_runtime.engine_file import short_contract_of
from rknn_tts_runtime.faults import EXIT_DONE, Fault, Mismatch
from rknn_tts_runtime.identity import check_digest, check_host, check_identity, check_stage, check_twin, identity_notes
from rknn_tts_runtime.ladders import MEASURED, MODELLED
from rknn_tts_runtime.manifest import EngineManifest, manifest_of
from rknn_tts_runtime.plans.definition import RKNN, Role, family_of
from rknn_tts_runtime.plans.plan import Component, Plan
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaking.voices import SPEAKERS, open_speaker

NAME = "check"
HELP = "whether a plan, its files and this machine go together, and what the engines take"

HOST = "host"
"""The role whose file is no engine."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("plan", type=Path, metavar="PLAN.json", help="as `rknn-tts plan` writes it")
    add_plan_arguments(parser)
    parser.add_argument("--load", action="store_true", help="load each engine once, and the whole voice, as well")
    add_backend_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check every file of every plan, and say what was found; the exit code is that of the worst.

    Raises:
        BadInput: the plan is wrong, or names files that are not there.
        RunFault: the backend's library is not on this machine.
    """
    plans = read_plans(arguments.plan, arguments.model, arguments.family)
    checker = _Checker(chosen_backend(arguments), arguments.load)
    for plan in plans.values():
        for component in plan.components.values():
            checker.check(plan, component)
        if arguments.load and plan.components and plan.family in SPEAKERS:
            checker.open(plan)
        for name in plan.left_to_host:
            tell(f"{plan.family} {name}: is the host application's")
    if not any(plan.components or plan.left_to_host for plan in plans.values()):
        tell(f"{arguments.plan}: places no component, so there is nothing to check")
    checker.tell_together()
    if checker.refused:
        complain(f"refused: {checker.refused} of what {arguments.plan} places: see above")
    return checker.exit_code


class _Checker:
    """Goes through files one by one, tells what is wrong with each, and goes on."""

    def __init__(self, backend: Backend, load: bool) -> None:
        self._backend = backend
        self._load = load
        self._costs: dict[Path, int] = {}
        self._hosts: set[tuple[Path, str]] = set()  # with their digests: each is read through once
        self.exit_code = EXIT_DONE
        self.refused = 0

    def check(self, plan: Plan, component: Component) -> None:
        """Check all engines of `component`, and its host half against each of them."""
        roles = _roles_of(plan, component)
        sound: list[EngineManifest] = []  # windows of a ladder
        for role, files in component.artifacts.items():
            for file in files if roles[role].is_engine else ():
                try:
                    manifest, facts = self._engine(plan, component, roles[role], file)
                    sound += [manifest] if roles[role].beyond_ladder and manifest.window is not None else []
                except Fault as fault:
                    facts = [self._refusal(fault)]
                tell(f"{plan.family} {component.name} {role}: {file.name}", *(f"  {fact}" for fact in facts))
        if len(sound) > 1 or any(manifest.trim is not None for manifest in sound):
            lines = ladder_lines(sound)
            tell(f"{plan.family} {component.name}: what speaks utterances of", *(f"  {line}" for line in lines))

    def open(self, plan: Plan) -> None:
        """Open the voice of `plan`: host half, settings and engines as they are when it speaks."""
        try:
            open_speaker(plan, self._backend).close()
            fact = "opens"
        except Fault as fault:
            fact = self._refusal(fault)
        tell(f"{plan.family} as a voice: {fact}")

    def tell_together(self) -> None:
        """Say whether all engines fit into the address space at once."""
        if not self._costs:
            return
        total = sum(self._costs.values())
        fits = "fit into one process" if total <= BUDGET_BYTES else "do not fit into one process at once"
        tell(f"together: {as_mib(total)} of {as_mib(BUDGET_BYTES)}: they {fits}")

    def _host(self, manifest: EngineManifest, host: Path) -> None:
        wanted = manifest.host_sha256
        if wanted is not None and (host, wanted) not in self._hosts:
            check_host(manifest, host)
            self._hosts.add((host, wanted))

    def _refusal(self, fault: Fault) -> str:
        self.exit_code = max(self.exit_code, fault.exit_code)
        self.refused += 1
        return f"refused: {fault}"

    def _engine(self, plan: Plan, component: Component, role: Role, file: Path) -> tuple[EngineManifest, list[str]]:
        manifest = manifest_of(file)
        check_stage(manifest, plan.family, component.name)
        _check_role(manifest, component, role, _roles_of(plan, component))
        check_identity(manifest, short_contract_of(file), soc() if self._backend.name == NPU else None)
        check_digest(manifest)
        for host in component.artifacts.get(HOST, ()):
            self._host(manifest, host)
        if self._backend.name != NPU:
            check_twin(manifest)
        cost = cost_of(manifest, self._backend.memory(manifest))
        self._costs[file.resolve()] = cost.context_bytes  # of one engine in two roles once: it is loaded once
        if self._load:
            self._backend.open(manifest).close()
        return manifest, [
            _geometry(manifest),
            f"takes {as_mib(cost.context_bytes)} ({cost.source})",
            *([] if isinstance(manifest.data.get("board"), dict) else ["not measured on a board"]),
            *identity_notes(manifest),
        ]


def _roles_of(plan: Plan, component: Component) -> Mapping[str, Role]:
    """The artifact roles of `component`, by name."""
    family = family_of(plan.family)
    definition = family.component(component.name) if family else None
    implementation = definition.implementation(RKNN) if definition else None
    return {role.name: role for role in implementation.roles} if implementation else {}


def _check_role(manifest: EngineManifest, component: Component, role: Role, roles: Mapping[str, Role]) -> None:
    """Check that the engine was made for the role that the plan has it in, or has the one that it was made for as well.

    Raises:
        Mismatch: it was made for another.
    """
    fitting = [one.name for one in roles.values() if one.is_engine and one.takes(manifest.role)]
    if role.name in fitting:
        return
    named = [file for name in fitting for file in component.artifacts.get(name, ())]
    if manifest.engine not in named:  # Qwen3's main engine may be its window too
        raise Mismatch(
            f"{manifest.engine}: was made for the role {manifest.role or 'none'}, and the plan names it as "
            f"{role.name}; name it as {' or '.join(fitting) or 'nothing there'}."
        )


def _geometry(manifest: EngineManifest) -> str:
    facts = [f"for {manifest.target}", f"toolkit {manifest.toolkit}"]
    if manifest.window is not None:
        facts.append(f"window of {manifest.window.frames} frames, {manifest.window.emitted} emitted")
    if manifest.trim is not None:
        facts.append(f"trimmed to {manifest.trim.frames}")
    elif manifest.masked:
        facts.append("masked")
    if manifest.step is not None:
        facts.append(f"steps of {manifest.step.codes} codes")
    if manifest.measured_ms is not None:
        facts.append(f"{manifest.measured_ms:.1f} ms a run ({MEASURED})")
    elif manifest.modelled_ms is not None:
        facts.append(f"{manifest.modelled_ms:.1f} ms a run ({MODELLED})")
    return ", ".join(facts)
