"""The environment of the converter process."""

from __future__ import annotations

from engine.converter import child_environment


def test_child_environment_holds_no_more_than_it_needs() -> None:
    ours = {"PYTHONPATH": "/x", "https_proxy": "http://p", "HOME": "/home/me", "SECRET": "s"}
    theirs = child_environment(ours)
    assert "MALLOC_PERTURB_" not in theirs  # the compiler crashes where what it has freed is filled
    assert not {"PYTHONPATH", "https_proxy", "SECRET"} & set(theirs)
    assert "me" not in theirs["HOME"]
