"""One set-up of an environment at a time, across processes: of one machine, and of all that share its folder by NFS.

Linux makes flock(2) a lock of all bytes of the file there, which the server keeps (since 2.6.12). Such a lock asks for
a file that is open for writing.
"""

import contextlib
import errno
import fcntl
import os
import socket
from pathlib import Path
from typing import Callable, Iterator

from environments.locks import ENVIRONMENTS
from environments.trouble import Trouble

# What the file says: a process, and its machine, whose name has 64 bytes at most (gethostname(2)).
_HOLDER, _LONGEST_HOLDER = "{} on {}", 80


@contextlib.contextmanager
def only_one(lock_file: Path, say: Callable[[str], None]) -> Iterator[int]:
    """Holds the lock file while the body runs; waits, and says so, while another process holds it.

    Yields the file's descriptor, for children to inherit: a set-up that is killed leaves a pip that still writes, and
    with the descriptor in its hands the next set-up waits for that pip as well.
    """
    try:
        descriptor = os.open(str(lock_file), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise Trouble(
            f"{lock_file} cannot be written ({error.strerror}): rknn-tts sets up its environments inside its "
            f"checkout, and the converter's in the folder that {ENVIRONMENTS} names, so put that where you may write"
        ) from error
    try:
        _acquire(descriptor, lock_file, say)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _HOLDER.format(os.getpid(), socket.gethostname()).encode("ascii", "replace"))
        # What another node made while we waited is seen at once: a folder that is opened is asked about (NFS).
        any(lock_file.parent.iterdir())
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, lock_file: Path, say: Callable[[str], None]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise Trouble(
                f"{lock_file} cannot be locked ({error.strerror}): put the checkout on a file system with locks, or "
                f"the converter's environment, with {ENVIRONMENTS}, on this machine's own disk"
            ) from error
    holder = os.pread(descriptor, _LONGEST_HOLDER, 0).decode("ascii", "replace")
    say("waiting for another set-up of the same environment to end (process {})...".format(holder or "unknown"))
    fcntl.flock(descriptor, fcntl.LOCK_EX)
