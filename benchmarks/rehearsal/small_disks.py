"""Small disks for one command, in a mount namespace of its own."""

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

FILLER = "filler"
NAMESPACE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]


def can_mount() -> bool:
    """Return whether this user may mount a small disk."""
    command = [*NAMESPACE, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tempfile.gettempdir()]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def on_small_disk(
    command: Sequence[str], place: Path, disk: Path, megabytes: int, after: str = ":"
) -> list[str]:
    """Make both folders; return a command with a small disk at `disk`, which is copied to `place` at its end.

    `after` is a line of shell that runs before the copy, when the filler is removed. Exit code 77: no mount.
    """
    place.mkdir(exist_ok=True)
    disk.mkdir(exist_ok=True)
    script = (
        f"mount -t tmpfs -o size={megabytes}m tmpfs {shlex.quote(str(disk))} || exit 77\n"
        '"$@"\ncode=$?\n'
        f"rm -f {shlex.quote(str(disk / FILLER))}\n{after}\n"
        f"cp -a {shlex.quote(str(disk))}/. {shlex.quote(str(place))}/; exit $code"
    )
    return [*NAMESPACE, "sh", "-c", script, "sh", *command]


def fill(disk: Path) -> None:
    """Write a filler until nothing more fits."""
    block = bytes(1 << 20)
    with contextlib.suppress(OSError), (disk / FILLER).open("wb", buffering=0) as file:
        while shutil.disk_usage(disk).free:
            file.write(block)
