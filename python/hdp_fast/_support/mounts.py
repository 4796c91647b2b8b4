"""Finds out which files lie on another machine, as far as Linux knows it."""

from __future__ import annotations

import re
from pathlib import Path

# What several machines can write to at once. Most lack shared memory between machines, which
# SQLite's write-ahead log needs, and many have locks that a lost connection ends silently.
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "coda"}
_NETWORK |= {"ceph", "lustre", "gpfs", "beegfs", "panfs", "pvfs2"}
_NETWORK |= {
    f"fuse.{name}"
    for name in ("sshfs", "glusterfs", "ceph", "ceph-fuse", "s3fs", "gcsfuse", "rclone", "juicefs")
}


def network_type(path: Path) -> str | None:
    """The type of the network file system that holds a path; None for any other or an unknown one.

    The path must be without symbolic links, but need not exist.
    """
    kind = _type_of(path, _mountinfo())
    return kind if kind in _NETWORK else None


def _mountinfo() -> str:
    """The lines of /proc/self/mountinfo, see proc(5); empty where there is none, as on macOS."""
    try:
        return Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except OSError:
        return ""


def _type_of(path: Path, mountinfo: str) -> str | None:
    """The type of the innermost mount that holds a path; of several at one place, of the latest."""
    above = {str(folder): len(folder.parts) for folder in (path, *path.parents)}
    longest, kind = 0, None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, types = before.split(" "), after.split(" ")
        # A blank in a name is written \040.
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        if above.get(point, 0) >= max(longest, 1):
            longest, kind = above[point], types[0]
    return kind
