"""Long work that can be taken up again: what is done so far, in a folder beside the file that it will become."""

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

EVERY_S = 30.0
STATE = "state.json"


class Partial:
    """`<out>.partial/`: a state and files of the caller; gone when the work is done, anew for another request."""

    def __init__(self, out: Path, request: dict[str, Any], *, force: bool = False) -> None:
        """`request` is all that the result depends on, as JSON. Raises OutputRefused for `out`."""
        place = check_output(out, force=force)
        self.folder = place.with_name(place.name + ".partial")
        self._request = json.loads(json.dumps(request))
        self._kept_s = time.monotonic()

    def begin(self) -> dict[str, Any]:
        """Return the state that was kept for the same request, or an empty one. Raises OutputRefused."""
        known = self._known()
        will_write(self.folder)  # it holds pictures of the recording, and stays when the command is cut off
        if known.get("request") == self._request:
            state: dict[str, Any] = known["state"]
            return state
        self.remove()
        try:
            self.folder.mkdir(parents=True)
            self.keep({})
        except OSError as error:
            self.remove()
            raise cannot_write(self.folder, error) from error
        return {}

    def _known(self) -> dict[str, Any]:
        """Return what was kept; raises OutputRefused where the folder is not one of ours, which is never removed."""
        try:
            known = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        is_ours = isinstance(known, dict) and known.keys() == {"request", "state"}
        if not self.folder.is_symlink() and (is_ours or not self._holds_anything()):
            return known if is_ours else {}
        raise OutputRefused(
            self.folder, "is in the way and not of this command", "move it or choose another name"
        )

    def _holds_anything(self) -> bool:
        if not self.folder.is_dir():
            return self.folder.exists()
        return any(path.name != STATE + PART_SUFFIX for path in self.folder.iterdir())

    @property
    def due(self) -> bool:
        """Whether it is time to keep what is done."""
        return time.monotonic() - self._kept_s >= EVERY_S

    def keep(self, state: dict[str, Any]) -> None:
        """Write down how far the work is; files that the state names must be whole before."""
        write_json(self.folder / STATE, {"request": self._request, "state": state})
        named = {str(value) for value in state.values()} | {STATE}
        if "file" in state:
            for old in (path for path in self.folder.iterdir() if path.name not in named):
                old.unlink()
        self._kept_s = time.monotonic()

    def remove(self) -> None:
        """Put everything away."""
        shutil.rmtree(self.folder, ignore_errors=True)
