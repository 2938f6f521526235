"""What the pages name is there: links, options, variables of the environment, files."""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from rknn_tts_runtime.cli import COMMANDS, Command

from converters.vits_ladder import default_windows, rungs_of
from rknn_tts.request import options
from tests.docs.pages import ROOT, anchors, links, pages
from tests.docs.test_reference_flags_page import REFERENCE

PAGES = pages()
OTHER_OPTIONS = {"--help", "--version", "--dec-mask"}
"""Of every command line, and of the tool of the reference that the passes quote."""

THEIRS = {
    "reference-flags.md": {flag for flags in REFERENCE.values() for flag in flags} | {"--global-stats"},
    "plans.md": {"--session-option"},
    "ci.md": {"--check", "--strict"},
    "farm-clusters.md": {"--exclude", "--exclusive", "--file", "--filename", "--follow", "--namespace", "--tag"},
}
"""By page, options of others: of the reference that it translates, of sha256sum, SLURM, podman and kubectl."""

_OPTION = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*")
_VARIABLE = re.compile(r"RKNN_TTS_[A-Z_]+")
_MAKE_COMMAND = re.compile(r"\bmake ([a-z]+)((?: [A-Z_]+=\S+)*)")
_WINDOW_TAKEN = re.compile(r"(?:engines|build-logs)/\S*?(piper|inflect)-decoder-w(\d+)")
_WIDTHS_ASKED = re.compile(r"(?:WINDOWS?=|--windows? )([\dmt,]+)")


@cache
def companion_options() -> frozenset[str]:
    """The options of the board companion's commands."""
    told = ""
    for name in COMMANDS:
        parser = argparse.ArgumentParser()
        module: Command = importlib.import_module(f"rknn_tts_runtime.commands.{name}")
        module.add_arguments(parser)
        told += parser.format_help()
    return frozenset(_OPTION.findall(told))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    broken = []
    for link in links(page):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_reachable_from_the_readme() -> None:
    found = {ROOT / "README.md"}
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        for link in links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target not in found and target.exists():
                found.add(target)
                todo.append(target)
    assert [page.name for page in PAGES if page not in found] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_exist_when_a_page_names_them(page: Path) -> None:
    known = {option.flag for option in options()} | companion_options() | OTHER_OPTIONS | THEIRS.get(page.name, set())
    assert set(_OPTION.findall(page.read_text(encoding="utf-8"))) - known == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_and_variables_exist_when_a_page_names_them(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    known = {option.variable for option in options()} | {"PYTHON", "UPGRADE"}
    for target, variables in _MAKE_COMMAND.findall(page.read_text(encoding="utf-8")):
        if variables or target in targets:
            assert target in targets
            assert {word.split("=")[0] for word in variables.split()} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_engines_are_made_by_commands_of_a_page_when_the_default_ladder_has_none_so_wide(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    asked = {width for widths in _WIDTHS_ASKED.findall(text) for width in re.findall(r"\d+", widths)}
    taken = set(_WINDOW_TAKEN.findall(text))
    assert {(family, width) for family, width in taken if width not in asked | default_widths(family)} == set()


def default_widths(family: str) -> set[str]:
    """The widths of the engines that the decoder's command builds where nothing is asked."""
    ladders = default_windows()[f"{family}.decoder"].values()
    return {str(rung.frames) for ladder in ladders for rung in rungs_of(ladder)}


COMMAND_LINE_ONLY = {"bench"}
"""Commands whose names mean something else under make."""


def test_make_help_names_every_variable() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = set(re.findall("[A-Z_]+", told.partition("Options:")[2]))
    of_make = {option.variable for option in options() if set(option.commands) - COMMAND_LINE_ONLY}
    assert of_make - named == set()


def test_environment_variables_are_documented_when_the_code_reads_them() -> None:
    sources = [*ROOT.glob("[a-z]*/**/*.py"), ROOT / "rknn-tts", ROOT / "Makefile"]
    ours = (path for path in sources if "tests" not in path.parts and "docs" not in path.parts)
    read = {name for path in ours for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))}
    private = {"RKNN_TTS_MAKE_OVERRIDES"}
    told = set(_VARIABLE.findall((ROOT / "docs" / "environments.md").read_text(encoding="utf-8")))
    assert told == read - private
