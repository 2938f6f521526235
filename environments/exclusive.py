"""One set-up of an environment at a time, on one machine, across processes."""

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from typing import Callable, Iterator

from environments.trouble import Trouble


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
            "checkout, so put that in a folder that you may write"
        ) from error
    try:
        _acquire(descriptor, lock_file, say)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode("ascii"))
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, lock_file: Path, say: Callable[[str], None]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise Trouble(f"{lock_file} cannot be locked ({error.strerror})") from error
    holder = os.pread(descriptor, 32, 0).decode("ascii", "replace")
    say("waiting for another set-up of the same environment to end (process {})...".format(holder or "unknown"))
    fcntl.flock(descriptor, fcntl.LOCK_EX)
