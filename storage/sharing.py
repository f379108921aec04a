"""Who may read what is written for a recording: its owner alone, or the group too that `lab.toml` names."""

from __future__ import annotations

import grp
import os
import stat
from pathlib import Path

from storage.errors import NoSuchGroup
from storage.lab import lab_of

SHARED = 0o027
"""The umask where a laboratory shares: its group may read, others may not."""


def share(recording: Path) -> None:
    """Let the laboratory's group read what this process, and what it starts, writes from now on.

    Raises BadLabFile, NoSuchGroup.
    """
    if _group(recording) is not None:
        os.umask(SHARED)


def give_to_group(recording: Path) -> None:
    """Give a new folder of a recording to the laboratory's group; what is made in it belongs to that too.

    Raises BadLabFile, NoSuchGroup where there is none of that name or we are no member.
    """
    found = _group(recording)
    if found is None:
        return
    try:
        os.chown(recording, -1, found.gr_gid)
    except PermissionError:
        raise NoSuchGroup(found.gr_name, "you are no member of it") from None
    recording.chmod(stat.S_IMODE(recording.stat().st_mode) | stat.S_ISGID)


def _group(recording: Path) -> grp.struct_group | None:
    name = lab_of(recording).group
    if name is None:
        return None
    try:
        return grp.getgrnam(name)
    except KeyError:
        raise NoSuchGroup(name, "this computer knows no group of that name") from None
