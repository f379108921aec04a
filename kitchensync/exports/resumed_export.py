"""An export of many recordings that goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kitchensync.storage.copies.derived import wrote
from kitchensync.storage.names import DERIVED
from kitchensync.storage.shell.outputs import cannot_write, check_place


class ResumedExport:
    """What a command has made in a folder, a line a recording in a hidden file there.

    Kept is what was made of a recording that has not changed since, with the same options, and is still there.
    """

    def __init__(
        self, out: Path, command: str, options: Mapping[str, Any], *, ending: str = "", resume: bool
    ) -> None:
        """`options` are all that decides what is made of a recording: `<recording><ending>`. Raises OutputRefused."""
        self._out, self._ending = check_place(out), ending
        self._path = self._out / f".kitchensync-export-{command}.jsonl"
        self._options = json.dumps([version("kitchensync"), options], sort_keys=True)
        self._before = self._lines() if resume else {}

    def _lines(self) -> dict[str, dict[str, Any]]:
        """Return the lines by what they were made of; one that a kill cut off is none."""
        found = {}
        with suppress(OSError):
            for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    one = json.loads(line)
                    found[str(one["made_of"])] = one
        return found

    def kept(self, recording: Path) -> dict[str, Any] | None:
        """Return what was said of a recording that need not be made again, None where it must."""
        before = self._before.get(self._made_of(recording))
        if before is None or before["files"] != self._files(recording):
            return None
        for name in before["files"]:
            wrote(self._out / name)
        said: dict[str, Any] = before["said"]
        return said

    def note(self, recording: Path, said: dict[str, Any]) -> None:
        """Keep that a recording was exported, and what was said of it. Raises OutputRefused."""
        line = {"made_of": self._made_of(recording), "files": self._files(recording), "said": said}
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"\n{json.dumps(line)}")  # behind what a kill cut off, too
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def _files(self, recording: Path) -> dict[str, int]:
        """Return the bytes of each file that was made of a recording, by its path in the folder."""
        made = self._out / f"{recording.name}{self._ending}"
        files = [made] if made.is_file() else sorted(path for path in made.rglob("*") if path.is_file())
        return {path.relative_to(self._out).as_posix(): path.stat().st_size for path in files}

    def _made_of(self, recording: Path) -> str:
        """Return a text that is another one when any file of a recording, or an option, is."""
        told = hashlib.sha256(f"{recording.name}\n{self._options}\n".encode())
        for path in sorted(path for path in recording.rglob("*") if path.is_file()):
            if path.name != DERIVED:  # says where exports went, this one too
                status = path.stat()
                told.update(f"{path.relative_to(recording)} {status.st_size} {status.st_mtime_ns}\n".encode())
        return told.hexdigest()
