"""Small disks for one command: a mount namespace of its own, in which nobody else sees them."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

SMALL_DISK_MB = {"data": 640, "nas": 24}
FILLER = "filler"


def can_mount() -> bool:
    """Return whether this user may mount a small disk in a namespace of its own."""
    command = [*_namespace(), "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tempfile.gettempdir()]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _namespace() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]


def on_small_disk(command: Sequence[str], place: Path, disk: Path, megabytes: int, after: str) -> list[str]:
    """Let a command find a small disk at `disk`; what it leaves there is copied to `place` at the end.

    `after` is a line of shell that runs between, once the filler is gone.
    """
    script = (
        f"mount -t tmpfs -o size={megabytes}m tmpfs {shlex.quote(str(disk))} || exit 77\n"
        '"$@"\ncode=$?\n'
        f"rm -f {shlex.quote(str(disk / FILLER))}\n{after or ':'}\n"
        f"cp -a {shlex.quote(str(disk))}/. {shlex.quote(str(place))}/; exit $code"
    )
    return [*_namespace(), "sh", "-c", script, "sh", *command]


def seen_by(pid: int, path: Path) -> Path:
    """Return the path by which a folder that only a process sees can be reached."""
    return Path(f"/proc/{pid}/root") / path.relative_to("/")


def fill(disk: Path) -> None:
    """Write until nothing more fits."""
    block = bytes(1 << 20)
    with contextlib.suppress(OSError), (disk / FILLER).open("wb", buffering=0) as file:
        while shutil.disk_usage(disk).free:
            file.write(block)
