"""lab.toml: settings of a laboratory for all its recordings."""

from __future__ import annotations

import grp
import os
import stat
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kitchensync.storage.errors import BadLabFile, NoSuchGroup

VARIABLE = "KITCHENSYNC_LAB"
"""Environment variable with the path of the file; by default it is in the folder of the recordings, or above."""
NAME = "lab.toml"
MOST_BYTES = 1 << 20


class Lab(BaseModel):
    """The tables of lab.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    data: str = Field(
        default="",
        description="Default folder of recordings for all commands, relative to this file.",
    )

    stores: list[str] = Field(
        default=[],
        description="Addresses of stores that belong to the laboratory: copies there need no consent.",
    )

    pause: Literal["mark", "drop"] = Field(
        default="mark",
        description="Privacy pauses: `mark` stores them and hides them from every way out, `drop` does not store "
        "pictures and sound of them.",
    )

    withdrawal: Literal["destroy", "quarantine"] = Field(
        default="destroy",
        description="What becomes of a recording that its participant withdrew on the tablet: `destroy`, or "
        "`quarantine`: put aside for its owner alone.",
    )

    grace_hours: int = Field(
        default=72,
        ge=0,
        le=8760,
        description="Hours in which a participant can take a withdrawal on the tablet back; then it is carried out.",
    )

    slate: bool = Field(
        default=False,
        description="The tablet plays two seconds of chirps when devices begin and end to record, by which "
        "`gopro import` finds the films of a recording where neither clock nor motion tells.",
    )

    site: str = Field(
        default="",
        max_length=80,
        description="Name of this site, where recordings of several laboratories come together: `kitchensync list` "
        "says it of every recording below.",
    )

    group: str | None = Field(
        default=None,
        description="Group of this computer whose members may read recordings; without one only their owner may.",
    )

    def owns(self, url: str) -> bool:
        """Return whether an address is one of the laboratory's stores, or below one."""
        return ".." not in url.split("/") and any(
            f"{url.rstrip('/')}/".startswith(f"{own.rstrip('/')}/") for own in self.stores
        )


def lab_of(recording: Path) -> Lab:
    """Read the lab file of a recording; without one the defaults are used. Raises BadLabFile, OSError."""
    path = _file(recording)
    return Lab() if path is None else _read(path)


def stated_data() -> Path | None:
    """Return the data folder of the lab file in the current folder or above. Raises BadLabFile, OSError."""
    path = _file(Path.cwd() / "any")
    stated = _read(path).data if path is not None else ""
    return path.parent / stated if path is not None and stated else None


def _read(path: Path) -> Lab:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BadLabFile(path, "is larger than any lab file")
    try:
        return Lab.model_validate(tomllib.loads(content.decode()))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadLabFile(path, f"{where}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise BadLabFile(path, str(error)) from None


def _file(recording: Path) -> Path | None:
    if stated := os.environ.get(VARIABLE):
        return Path(stated)
    return next((folder / NAME for folder in recording.parents if (folder / NAME).is_file()), None)


SHARED = 0o027
"""The umask with a group: its members may read, others may not."""


def share(recording: Path) -> None:
    """Let the laboratory's group read what this process writes from now on. Raises BadLabFile, NoSuchGroup."""
    if _group(recording) is not None:
        os.umask(SHARED)


def give_to_group(recording: Path) -> None:
    """Give a new folder, and new files in it, to the laboratory's group. Raises BadLabFile, NoSuchGroup."""
    group = _group(recording)
    if group is None:
        return
    try:
        os.chown(recording, -1, group.gr_gid)
    except PermissionError:
        raise NoSuchGroup(group.gr_name, "you are no member of it") from None
    recording.chmod(stat.S_IMODE(recording.stat().st_mode) | stat.S_ISGID)


def _group(recording: Path) -> grp.struct_group | None:
    name = lab_of(recording).group
    if name is None:
        return None
    try:
        return grp.getgrnam(name)
    except KeyError:
        raise NoSuchGroup(name, "this computer knows no group of that name") from None
