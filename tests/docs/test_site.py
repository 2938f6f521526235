"""The site that `make site` writes: whole, true to the pages, and read without a network or a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.docs.pages import ROOT, pages

SITE_PAGES = sorted({*pages(), ROOT / "CHANGELOG.md", ROOT / "requirements" / "README.md"})
STRUCTURE = ("h1", "h2", "h3", "h4", "ul", "ol", "li", "table", "th", "td", "pre", "code", "a", "strong", "em")
"""Elements that a reader would miss, or find where none was meant."""

_OF_CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
_FETCHED = re.compile(r"fetch\(|XMLHttpRequest|importScripts|new Worker|[^:]//[a-z0-9-]+\.[a-z]")
_TIMEOUT_S = 60


@dataclass
class Html(HTMLParser):
    """A page of the site, taken apart.

    Attributes:
        links: where it leads.
        assets: what a browser loads with it.
        anchors: what can be linked to in it.
        elements: how many of each stand in its main part.
        text: what one reads there.
    """

    links: list[str] = field(default_factory=list)
    assets: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    elements: Counter[str] = field(default_factory=Counter)
    text: str = ""
    _depth: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given or tag == "link":
            self.assets.append(given.get("src") or given["href"])
        if self._depth:
            self.elements[tag] += 1
        if tag == "div" and (self._depth or given.get("role") == "main"):
            self._depth += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._depth:
            self._depth -= 1

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.text += data


def parsed(text: str) -> Html:
    html = Html()
    html.feed(text)
    return html


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as the command writes it."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    assert f"site: {folder}/index.html" in done.stdout
    return folder


def build(checkout: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """`make site` of `checkout` into `folder`, without this test's own make around it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "site", f"OUT={folder}"], cwd=checkout, env=kept, capture_output=True, text=True, timeout=_TIMEOUT_S
    )


def place_of(page: Path) -> str:
    """Where the site has the page, relative to it."""
    name = page.relative_to(ROOT).as_posix()
    return re.sub(r"README\.md$", "index.html", name) if name.endswith("README.md") else name[:-2] + "html"


def of_navigation(entries: list[Any]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += of_navigation(value) if isinstance(value, list) else [value]
    return found


def test_navigation_has_every_page_once() -> None:
    told = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(of_navigation(told["nav"])) == sorted(path.relative_to(ROOT).as_posix() for path in SITE_PAGES)


def test_every_page_is_written_and_reached_from_the_first(site: Path) -> None:
    linked = set(parsed((site / "index.html").read_text(encoding="utf-8")).links)
    # A browser that opens the site from a disk shows a folder where its index is linked to as `docs/`.
    assert {place_of(page) for page in SITE_PAGES} - {"index.html"} <= linked
    assert all((site / place_of(page)).is_file() for page in SITE_PAGES)


@pytest.mark.parametrize("page", SITE_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_has_the_structure_that_code_hosts_show(site: Path, page: Path) -> None:
    theirs = MarkdownIt("commonmark").enable("table").render(page.read_text(encoding="utf-8"))
    wanted, built = parsed(f'<div role="main">{theirs}</div>'), parsed((site / place_of(page)).read_text("utf-8"))
    assert {name: built.elements[name] for name in STRUCTURE} == {name: wanted.elements[name] for name in STRUCTURE}
    assert built.text.split() == wanted.text.split()


def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    read = {path: parsed(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    broken = []
    for path, html in read.items():
        for link in html.links:
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if "://" not in link and not (
                target.is_file() and (not anchor or anchor in read[target].anchors | {"navbar-collapse"})
            ):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        for asset in parsed(path.read_text(encoding="utf-8")).assets:
            assert (path.parent / asset).resolve().is_file(), f"{path.name}: {asset}"
    for path in site.rglob("*.css"):
        for told in _OF_CSS.findall(path.read_text(encoding="utf-8")):
            asset = next(filter(None, told))
            inside = asset.startswith("data:") or (path.parent / asset.partition("?")[0]).resolve().is_file()
            assert inside, f"{path.name}: {asset}"


def test_our_search_asks_no_server(site: Path) -> None:
    assert _FETCHED.search((site / "search" / "main.js").read_text(encoding="utf-8")) is None


def test_search_knows_every_section(site: Path) -> None:
    script = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("window.searchIndex = ").removesuffix(";\n"))
    told = {entry["location"]: entry["text"] for entry in index["docs"]}
    for page in SITE_PAGES:
        html = parsed((site / place_of(page)).read_text(encoding="utf-8"))
        sections = {place for place in told if place.startswith(f"{place_of(page)}#")}
        assert len(sections) == sum(html.elements[name] for name in STRUCTURE[:4])
    assert "0x4038" in told["docs/troubleshooting.html#regtask"]


def test_search_shows_a_section_when_a_browser_opens_the_page_from_the_disk(site: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        # No browser belongs to the environments; what the search reads is checked above.
        return
    page = f"{(site / 'index.html').as_uri()}?q=REGTASK+0x4038"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    done = subprocess.run(
        [browser, *options, f"--user-data-dir={tmp_path}", "--virtual-time-budget=4000", "--dump-dom", page],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    found = done.stdout.partition('id="mkdocs-search-results"')[2]
    assert re.search(r'<a href="\./docs/troubleshooting\.html#regtask">Troubleshooting: REGTASK</a>', found)


def test_site_is_refused_when_a_link_leads_nowhere(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("docs", "runtime", "requirements", "examples"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("*.txt", "build", "__pycache__"))
    for name in ("mkdocs.yml", "Makefile", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    for name in ("environments", ".venv"):
        (checkout / name).symlink_to(ROOT / name)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (checkout / "README.md").write_text(
        f"{readme}\n[a](docs/nowhere.md) [b](docs/gates.md#nothing)\n", encoding="utf-8"
    )
    done = build(checkout, tmp_path / "site")
    assert done.returncode == 2
    assert "'docs/nowhere.md', but the target is not found" in done.stderr
    assert "'docs/gates.md#nothing', but the doc 'docs/gates.md' does not contain an anchor '#nothing'" in done.stderr
