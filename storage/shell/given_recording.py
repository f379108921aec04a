"""How commands take recordings: what is none is refused where it is given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class GivenRecording(click.Path):
    """A recording, or a folder of recordings: an absolute path whose links are followed.

    With `usable` a recording must be open to use: not withdrawn, its manifest whole. With `files` it may be a file.
    """

    def __init__(self, *, usable: bool = False, files: bool = False) -> None:
        super().__init__(path_type=Path, resolve_path=True)
        self._usable, self._files = usable, files

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises NotARecording, with `usable` whatever keeps it from being used."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not (self._files and path.is_file()):
            check_recordings(path, usable=self._usable)
        return path


def check_recordings(path: Path, *, usable: bool = False) -> None:
    """Raise NotARecording unless a path is a recording or holds some."""
    from storage.errors import NotARecording  # commands load what is heavy at their own time
    from storage.life import life_of
    from storage.names import recordings_in
    from storage.permission import Purpose, ask
    from storage.sharing import share

    if not path.exists():
        raise NotARecording(path, "there is no such folder")
    share(path)
    if recordings_in(path) == [path]:
        if usable:
            ask(path, Purpose.LOOK)
        else:
            life_of(path)
