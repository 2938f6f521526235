"""A page as HTML: one file that needs no other, no script and no network.

Whatever it shows may come from a file that nobody vouches for: everything is escaped but the figures, which are our
own, and whose texts are escaped where they are drawn. A policy in the page itself lets a browser load nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment

from pages.theme import environment, is_marked
from rknn_tts.engine_page.elements import Page

MARK = b'<meta name="generator" content="rknn-tts report">'
"""In the first bytes of every page: what may be replaced by another."""

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def page_html(page: Page) -> bytes:
    """The page as the bytes of its file (UTF-8)."""
    text = _environment().get_template("page.html.j2").render(page=page)
    return text.encode("utf-8", errors="backslashreplace")


def is_page(path: Path) -> bool:
    """Whether the file `path` is a page that was written by this command.

    Raises:
        OSError: it cannot be read.
    """
    return is_marked(path, MARK)


@cache
def _environment() -> Environment:
    made = environment(_TEMPLATES)
    made.filters["kind"] = lambda element: type(element).__name__
    made.filters["percent"] = lambda share: f"{100 * min(1.0, max(0.0, share)):.1f}"
    return made
