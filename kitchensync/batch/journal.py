"""What a run over many recordings has done already, so that the same command goes on after Ctrl-C or a power cut.

It lies in the user's folder for such notes, not beside the recordings, which may be on a store that nobody writes to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from storage.errors import words_of
from storage.names import MANIFEST

Row = dict[str, Any]


class Journal:
    """The rows of one command: of its verb, its options and its paths, with this software."""

    def __init__(self, command: list[Any]) -> None:
        """Open the journal of a command; nothing is written yet."""
        about = json.dumps([version("kitchensync"), *command], sort_keys=True)
        self.path = _folder() / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.jsonl"
        self._is_kept = True

    def done(self) -> dict[Path, Row]:
        """Return the rows of recordings that an interrupted run has done, and whose manifest is as it was."""
        found: dict[Path, Row] = {}
        with contextlib.suppress(OSError):
            for line in self.path.read_bytes().splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # cut off in the middle of a line
                    said = json.loads(line)
                    found[Path(said["row"]["path"])] = said
        return {path: said["row"] for path, said in found.items() if said["manifest"] == _manifest(path)}

    def add(self, row: Row) -> None:
        """Note a recording that is done; where no note can be written, say once that the run cannot be continued."""
        if not self._is_kept or row["exit"] != 0:
            return
        line = json.dumps({"manifest": _manifest(Path(row["path"])), "row": row})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self._is_kept = False
            print(f"kitchensync: after Ctrl-C this run begins anew: {words_of(error)}", file=sys.stderr)

    def close(self) -> None:
        """Forget it all: the run came to its end, and the next one does everything anew."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def _folder() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "kitchensync" / "batch"


def _manifest(recording: Path) -> str:
    try:
        return hashlib.sha256((recording / MANIFEST).read_bytes()).hexdigest()
    except OSError:
        return ""
