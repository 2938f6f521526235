"""What is asked of the machine before anything is installed: its system, and room on its disk."""

import os
import platform
import shutil
import sys
from pathlib import Path

from environments.trouble import Trouble

# pip unpacks each wheel beside what it installs from it, and keeps a copy of the download.
_SPARE_MEGABYTES = 300


def system_problem(system: str, machine: str, libc: str) -> str:
    """Why the toolkit cannot run on such a system; empty when it can."""
    if system != "linux" or machine.lower() not in ("x86_64", "amd64"):
        return (
            "engines are built on Linux x86-64 alone (rknn-toolkit2 has wheels for nothing else), and this is "
            f"{system} {machine}: run it on such a machine, or in a virtual machine or container of that kind. A "
            "board itself needs only runtime/"
        )
    if not libc.startswith("glibc"):
        return (
            "a Linux with glibc is needed (the wheels it installs are built against it), and this one has {}: "
            "use Debian, Ubuntu, Fedora or another such distribution, in a container if need be".format(
                libc or "another C library"
            )
        )
    return ""


def libc_name() -> str:
    """The C library of this process, as `glibc 2.31`; empty where it does not say."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""


def check_system() -> None:
    """Refuses a system that the toolkit has no wheels for."""
    problem = system_problem(sys.platform, platform.machine(), libc_name())
    if problem:
        raise Trouble(problem)


def check_space(folder: Path, megabytes: int) -> None:
    """Refuses to start an installation that the disk cannot hold."""
    free = shutil.disk_usage(str(folder)).free // 10**6
    needed = megabytes + _SPARE_MEGABYTES
    if megabytes and free < needed:
        raise Trouble(
            f"the disk is too full: setting up takes about {needed} MB in {folder}, and {free} MB are free. Make "
            "room, or move the checkout"
        )
