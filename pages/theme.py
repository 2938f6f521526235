"""The look of our pages, and the environment that they are written in: one file each, no script and no network.

Whatever a page shows may come from a file that nobody vouches for: everything is escaped but what is our own markup.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pages.text import shown

MARKED_WITHIN_BYTES = 1024
"""In so many first bytes a page says which command wrote it."""

_STYLE = Path(__file__).with_name("style.css")


def environment(templates: Path) -> Environment:
    """The environment of the templates in the folder `templates`: it escapes, and a name that is missing is an error.

    Its filter `svg` takes a text for our own markup; `style` is the style sheet, and `style_digest` what a policy of
    the page allows it by.
    """
    made = Environment(
        loader=FileSystemLoader(templates, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    made.filters["svg"] = Markup
    made.globals["style"] = Markup(style_sheet())
    made.globals["style_digest"] = style_digest()
    return made


@cache
def style_sheet() -> str:
    """The style sheet: light and dark, narrow and wide, and on paper."""
    return _STYLE.read_text(encoding="utf-8")


def style_digest() -> str:
    """Its digest as a Content-Security-Policy has it, where it stands alone between `<style>` and `</style>`."""
    return f"sha256-{base64.b64encode(hashlib.sha256(style_sheet().encode()).digest()).decode()}"


def is_marked(path: Path, mark: bytes) -> bool:
    """Whether the file `path` is a page that says `mark` of itself.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return mark in file.read(MARKED_WITHIN_BYTES)


def _printable(value: Any) -> Any:
    """Texts with their control characters visible; what is markup already is left as it is."""
    return shown(value) if type(value) is str else value
