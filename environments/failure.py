"""Turns what pip printed into one sentence."""

import re
from pathlib import Path
from typing import NamedTuple, Tuple


class _Cause(NamedTuple):
    pattern: str
    sentence: str


# The first that matches wins: a full disk also breaks connections, and a broken connection also leaves pip without
# a matching distribution.
_CAUSES = (
    _Cause(r"No space left on device|Disk quota exceeded", "the disk is full: make room and run this again"),
    _Cause(
        r"DO NOT MATCH THE HASHES",
        "a downloaded package is not the one that was locked (its hash differs): empty pip's cache (pip cache purge) "
        "and run this again; if it happens again, do not trust that package index",
    ),
    _Cause(
        r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError",
        "the package index's certificate was not accepted: set PIP_CERT to your network's certificate file, or look "
        "at the machine's clock",
    ),
    _Cause(
        r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|Read timed out|ProxyError|"
        r"ConnectionResetError|Connection refused|Connection aborted|Network is unreachable|Max retries exceeded|"
        r"Temporary failure in name resolution|ProtocolError|IncompleteRead|"
        r"\b5\d\d (?:Server )?Error",
        "the package index cannot be reached: check the network (or pip's own settings for a mirror or a proxy) and "
        "run this again; what was already downloaded is kept",
    ),
    _Cause(
        r"No matching distribution found|Could not find a version that satisfies",
        "the package index lacks a package that is needed, or its build for this machine: see that pip uses the full "
        "index, or a mirror of it",
    ),
    _Cause(r"\b(?:401|403|407) (?:Client )?Error", "the package index refused access: check pip's credentials"),
    _Cause(
        r"Permission denied|Read-only file system",
        "a file cannot be written: the checkout, pip's cache and the folder for temporary files must be writable",
    ),
)
_LAST_LINES = 40


def explain(output: str, status: int, log: Path) -> str:
    """What went wrong, what to do, and where pip's own words are."""
    return f"{cause(output, status)}. The whole output of pip is in {log}"


def cause(output: str, status: int) -> str:
    """What went wrong, and what to do: a sentence without its full stop."""
    lines = output.rstrip().split("\n")
    # Warnings of attempts that later succeeded stand earlier in the log than the error that ended it.
    for text in ("\n".join(lines[-_LAST_LINES:]), output):
        for known in _CAUSES:
            if re.search(known.pattern, text):
                return known.sentence
    if status < 0:
        return f"pip was ended by signal {-status} (out of memory?): run this again"
    return f"pip failed ({_last_error(tuple(lines))})"


def _last_error(lines: Tuple[str, ...]) -> str:
    errors = [line for line in lines if re.match(r"\s*(ERROR|error|\w*Error)\b", line)]
    return (errors or list(lines))[-1].strip()[:300] or "it printed nothing"
