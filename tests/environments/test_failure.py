from __future__ import annotations

from pathlib import Path

import pytest

from environments.failure import explain

REFUSED = (
    "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError(': Failed to "
    "establish a new connection: [Errno 111] Connection refused')': /simple/rich/\n"
)
NONE_FOUND = (
    "ERROR: Could not find a version that satisfies the requirement rich==15.0.0 (from versions: none)\n"
    "ERROR: No matching distribution found for rich==15.0.0\n"
)
LOG = Path("build-logs/setup-toolchain.log")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
            "the disk is full",
        ),
        (REFUSED + NONE_FOUND, "the package index cannot be reached"),
        (NONE_FOUND, "lacks a package that is needed"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n", "its hash differs"),
        (
            "ERROR: HTTP error 503 while getting x: 503 Server Error: Unavailable\n",
            "the package index cannot be reached",
        ),
        ("ERROR: 401 Client Error: Unauthorized for url: index\n", "refused access"),
        ("ssl.SSLCertVerificationError: CERTIFICATE_VERIFY_FAILED\n", "certificate was not accepted"),
        ("ERROR: Could not install packages: [Errno 13] Permission denied: 'x'\n", "cannot be written"),
        ("Collecting x\nERROR: something new happened\n", r"pip failed (ERROR: something new happened)"),
        ("", "pip failed (it printed nothing)"),
    ],
)
def test_explain_names_the_cause_and_the_log_when_pip_fails(output: str, said: str) -> None:
    sentence = explain(output, 1, LOG)
    assert said in sentence
    assert sentence.endswith("in build-logs/setup-toolchain.log")
    assert "\n" not in sentence


def test_explain_names_the_signal_when_pip_was_killed() -> None:
    assert "ended by signal 9" in explain("Collecting x\n", -9, LOG)


def test_explain_takes_the_last_error_when_an_earlier_connection_recovered() -> None:
    output = "WARNING: Retrying after connection broken by 'ReadTimeoutError'\n" + "Collecting x\n" * 50
    assert "the disk is full" in explain(output + "ERROR: No space left on device\n", 1, LOG)
