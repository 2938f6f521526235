"""What mkdocs does otherwise for this site: the pages are those of the checkout, where they stand, with their links.

- README.md and the other pages outside docs/ are pages too, and every page keeps its place, so that a link between two
  files is the same on a code host and here. Files that a page links to and that are no pages go along.
- Headings have the anchors that code hosts give them: lower case, a dash for each space. A bar that is escaped in a
  table's code is shown as a bar.
- The search needs no server: its index is a script, so it works in pages opened from a disk.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]

OUTSIDE = ("README.md", "CHANGELOG.md", "runtime/README.md", "requirements/README.md")
"""Pages that stand outside docs/."""

INDEX_JSON = "search/search_index.json"
INDEX_SCRIPT = "search/search_index.js"

UNUSED = (INDEX_JSON, "search/lunr.js", "search/worker.js", "sitemap.xml")
"""What mkdocs brings along, and no page of this site asks for."""

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s#]+)")
_CELL = re.compile(r"<t[dh]\b.*?</t[dh]>", re.DOTALL)
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have anchors made as code hosts make them, and no pages that would need the site's address."""
    config.theme.static_templates -= {"404.html", "sitemap.xml"}
    config.mdx_configs["toc"] = {**config.mdx_configs.get("toc", {}), "slugify": anchor}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the site: the theme's, the pages, and what these link to."""
    theirs = [file for file in files if file.src_dir != config.docs_dir]
    names = site_files(ROOT)
    return Files([*theirs, *(File.generated(config, name, abs_src_path=str(ROOT / name)) for name in names)])


def on_page_content(html: str, **_: Any) -> str:
    """Have code in a table show a bar where the page escapes it, as code hosts do."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the search's index as a script: a page that was opened from a disk may read no other kind."""
    site = Path(config.site_dir)
    index = (site / INDEX_JSON).read_text(encoding="utf-8")
    (site / INDEX_SCRIPT).write_text(f"window.searchIndex = {index};\n", encoding="utf-8")
    for name in UNUSED:
        (site / name).unlink()


def site_files(root: Path) -> list[str]:
    """The pages of the checkout `root` and the files that they link to, relative to it, in order."""
    pages = [*(root / name for name in OUTSIDE), *sorted((root / "docs").glob("*.md"))]
    found = dict.fromkeys(page.relative_to(root).as_posix() for page in pages)
    for page in pages:
        for link in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
            target = (page.parent / link).resolve()
            if target.is_file() and target.is_relative_to(root):
                found[target.relative_to(root).as_posix()] = None
    return list(found)


def anchor(heading: str, separator: str) -> str:
    """The anchor of a heading as on code hosts: lower case, `separator` for each space, no other punctuation."""
    return _NOT_IN_ANCHOR.sub("", heading.lower()).replace(" ", separator)
