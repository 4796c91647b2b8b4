"""Disks that are full and disks that can't be written, as a file system or without one."""

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

from harness import watched


def mounted(folder, *options):
    """Whether a file system in memory could be mounted there, which needs to be root."""
    call = ["mount", "-t", "tmpfs", *options, "none", str(folder)]
    return subprocess.run(call, capture_output=True).returncode == 0


def _mountable():
    with tempfile.TemporaryDirectory() as name:
        if os.getuid() or not mounted(Path(name)):
            return False
        subprocess.run(["umount", name], check=True)
        return True


MOUNTABLE = _mountable()
_SIZE = 1 << 21


class FileLimit:
    """A process none of whose files may grow beyond the room that is left: anywhere."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, work, room):
        return watched(work, limit=room)

    def close(self):
        """Nothing to take back: the limit went with the process."""


class SmallDisk:
    """A file system of 2 MiB, filled but for the room that is left: for root."""

    def __init__(self, folder):
        self.folder = folder / "disk"
        self.folder.mkdir()
        assert mounted(self.folder, "-o", f"size={_SIZE}")

    def run(self, work, room):
        filler = self.folder / "filler"
        state = os.statvfs(self.folder)
        free = state.f_bavail * state.f_frsize
        filler.write_bytes(bytes(max(0, free - room)))
        try:
            return watched(work)
        finally:
            filler.unlink()

    def close(self):
        subprocess.run(["umount", str(self.folder)], check=True)


FULL = [FileLimit, SmallDisk] if MOUNTABLE else [FileLimit]


@contextlib.contextmanager
def protected(folder):
    """A folder in which no one but root may write."""
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o777)


@contextlib.contextmanager
def read_only(folder):
    """A folder on a file system that is mounted to be read: for root."""
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


UNWRITABLE = [protected, read_only] if MOUNTABLE else [protected]
