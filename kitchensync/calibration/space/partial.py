"""Checkpoints of a long run, in a folder beside its output file."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from kitchensync.storage.copies.derived import will_write
from kitchensync.storage.manifest import write_json
from kitchensync.storage.names import PART_SUFFIX
from kitchensync.storage.options.outputs import OutputRefused, cannot_write, check_output

PERIOD_S = 30.0  # an interrupted run repeats at most this much work
STATE = "state.json"


class Partial:
    """The folder `<out>.partial/` with a state and files of the caller; it is removed after the run."""

    def __init__(self, out: Path, request: dict[str, Any], *, force: bool = False) -> None:
        """`request` is everything that the result depends on, as JSON. Raises OutputRefused for `out`."""
        place = check_output(out, force=force)
        self.folder = place.with_name(place.name + ".partial")
        self._request = json.loads(json.dumps(request))
        self._saved_s = time.monotonic()

    def begin(self) -> dict[str, Any]:
        """Return the saved state of the same request, or an empty one. Raises OutputRefused."""
        saved = self._saved()
        will_write(self.folder)  # it contains data of the recording and stays if the command is interrupted
        if saved.get("request") == self._request:
            state: dict[str, Any] = saved["state"]
            return state
        self.remove()
        try:
            self.folder.mkdir(parents=True)
            self.keep({})
        except OSError as error:
            self.remove()
            raise cannot_write(self.folder, error) from error
        return {}

    def _saved(self) -> dict[str, Any]:
        """Return the saved request and state. Raises OutputRefused for a folder that is not ours."""
        try:
            saved = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            saved = {}
        is_ours = isinstance(saved, dict) and saved.keys() == {"request", "state"}
        if not self.folder.is_symlink() and (is_ours or not self._has_content()):
            return saved if is_ours else {}
        raise OutputRefused(
            self.folder, "is in the way and not of this command", "move it or choose another name"
        )

    def _has_content(self) -> bool:
        if not self.folder.is_dir():
            return self.folder.exists()
        return any(path.name != STATE + PART_SUFFIX for path in self.folder.iterdir())

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._saved_s >= PERIOD_S

    def keep(self, state: dict[str, Any]) -> None:
        """Save a state; files that it names must be complete. Other files are deleted."""
        # before old files are removed: an interrupted run needs one whole state
        write_json(self.folder / STATE, {"request": self._request, "state": state})
        current = {str(value) for value in state.values()} | {STATE}
        if "file" in state:
            for old in (path for path in self.folder.iterdir() if path.name not in current):
                old.unlink()
        self._saved_s = time.monotonic()

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
