"""A page as HTML: one file that needs no other, no script and no network.

Whatever it shows may come from a file that nobody vouches for: everything is escaped but the figures, which are our
own, and whose texts are escaped where they are drawn. A policy in the page itself lets a browser load nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rknn_tts.blocks import shown
from rknn_tts.engine_page.elements import Page

MARK = b'<meta name="generator" content="rknn-tts report">'
"""In the first bytes of every page: what may be replaced by another."""

MARKED_WITHIN_BYTES = 1024

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def page_html(page: Page) -> bytes:
    """The page as the bytes of its file (UTF-8)."""
    text = _environment().get_template("page.html.j2").render(page=page, style=Markup(_style()))
    return text.encode("utf-8", errors="backslashreplace")


def is_page(path: Path) -> bool:
    """Whether the file `path` is a page that was written by this command.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return MARK in file.read(MARKED_WITHIN_BYTES)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters["svg"] = Markup
    environment.filters["kind"] = lambda element: type(element).__name__
    environment.filters["percent"] = lambda share: f"{100 * min(1.0, max(0.0, share)):.1f}"
    return environment


def _printable(value: Any) -> Any:
    """Texts with their control characters visible; what is markup already is left as it is."""
    return shown(value) if type(value) is str else value


def _style() -> str:
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8")
