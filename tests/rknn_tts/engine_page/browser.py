"""Chromium without a window, where it is installed: what it lays out of a page, and a picture of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT_S = 120

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    # Nothing on the network is reached: not by the page, not by the browser.
    "--proxy-server=http://127.0.0.1:9",
)

_MEASURE = """
<!DOCTYPE html><meta charset="utf-8"><body><script>
const widths = WIDTHS, found = {};
let left = widths.length;
function measured(frame, width) {
  const page = frame.contentDocument, root = page.documentElement;
  const box = (e) => { const r = e.getBoundingClientRect(); return [r.width, r.height]; };
  const all = (s) => [...page.querySelectorAll(s)];
  found[width] = {
    overflow: root.scrollWidth - root.clientWidth,
    sections: all("section").map((e) => [e.id, ...box(e)]),
    figures: all("figure svg").map(box),
    pictures: all("figure svg image").map(box),
    sounds: all("audio").map((e) => e.duration),
    wide: all("main > *, section > *").filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1)
      .map((e) => e.outerHTML.slice(0, 80)),
    good: all(".good").length ? page.defaultView.getComputedStyle(all(".good")[0]).color : "",
    paper: page.defaultView.getComputedStyle(page.body).backgroundColor,
  };
  if (!--left) {
    const told = document.createElement("pre");
    told.id = "found";
    told.textContent = JSON.stringify(found);
    document.body.append(told);
  }
}
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:900px;border:0`;
  frame.onload = () => {
    const waiting = [...frame.contentDocument.querySelectorAll("audio")].filter((e) => e.readyState < 1);
    Promise.all(waiting.map((e) => new Promise((done) => { e.onloadedmetadata = e.onerror = done; })))
      .then(() => measured(frame, width));
  };
  frame.src = "PAGE";
  document.body.append(frame);
}
</script></body>
"""


def browser() -> str | None:
    """The browser's program; None where none is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def laid_out(program: str, page: Path, widths: list[int], folder: Path) -> dict[str, Any]:
    """What `program` lays out of `page` in a window of each width: see the script above."""
    harness = page.with_name("measure.html")
    text = _MEASURE.replace("WIDTHS", json.dumps(widths)).replace("PAGE", page.name)
    harness.write_text(text, encoding="utf-8")
    told = _run(program, folder, "--allow-file-access-from-files", "--timeout=20000", "--dump-dom", harness.as_uri())
    match = re.search(r'<pre id="found">(.*?)</pre>', told, re.DOTALL)
    assert match, told[-2000:]
    found: dict[str, Any] = json.loads(match[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return found


def screenshot(program: str, page: Path, picture: Path, width: int, height: int, folder: Path, *, dark: bool) -> None:
    """A picture of `page` as it is seen first, on a light or a dark system."""
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    _run(program, folder, f"--window-size={width},{height}", scheme, f"--screenshot={picture}", page.as_uri())


def _run(program: str, folder: Path, *words: str) -> str:
    done = subprocess.run(
        [program, *_OPTIONS, f"--user-data-dir={folder}", *words],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
