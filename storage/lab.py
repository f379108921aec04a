"""lab.toml: what a laboratory states once for all its recordings."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from storage.errors import BadLabFile

VARIABLE = "KITCHENSYNC_LAB"
"""Environment variable with the path of the file; else it lies in the folder of the recordings, or in one above."""
NAME = "lab.toml"


class Lab(BaseModel):
    """The tables of lab.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

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

    group: str | None = Field(
        default=None,
        description="Group of this computer whose members may read recordings; without one only their owner may.",
    )

    def owns(self, url: str) -> bool:
        """Tell whether an address is one of the laboratory's stores, or lies below one."""
        return ".." not in url.split("/") and any(
            f"{url.rstrip('/')}/".startswith(f"{own.rstrip('/')}/") for own in self.stores
        )


def lab_of(recording: Path) -> Lab:
    """Read the lab file that holds for a recording; without one nothing is stated. Raises BadLabFile, OSError."""
    path = _file(recording)
    if path is None:
        return Lab()
    try:
        return Lab.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadLabFile(path, f"{where}: {first['msg']}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadLabFile(path, str(error)) from None


def _file(recording: Path) -> Path | None:
    if stated := os.environ.get(VARIABLE):
        return Path(stated)
    return next((folder / NAME for folder in recording.parents if (folder / NAME).is_file()), None)
