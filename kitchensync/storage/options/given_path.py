"""Paths and recordings as parameters of commands: absolute, and checked while parameters are parsed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class GivenPath(click.Path):
    """An absolute path with links resolved; a file of a recording without the necessary consent is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises NotARecording, Withdrawn."""
        path = super().convert(value, param, ctx)
        if isinstance(path, Path) and path.is_file():
            # imported late to keep the start of commands fast
            from kitchensync.storage.consent import Purpose, require_consent_for_file

            require_consent_for_file(path, Purpose.LOOK)
        return path


def given_path(*, exists: bool = False, file_okay: bool = True, dir_okay: bool = True) -> click.Path:
    """Return the type of a path argument or option; commands get an absolute `Path` with links resolved."""
    return GivenPath(exists=exists, file_okay=file_okay, dir_okay=dir_okay, path_type=Path, resolve_path=True)


class GivenRecording(click.Path):
    """A recording, or a folder of recordings: an absolute path with links resolved.

    With `usable` a recording must not be withdrawn or have a damaged manifest. With `files` it may be a file.
    """

    def __init__(self, *, usable: bool = False, files: bool = False) -> None:
        super().__init__(path_type=Path, resolve_path=True)
        self._usable, self._files = usable, files

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises NotARecording, with `usable` also Unusable."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not (self._files and path.is_file()):
            check_recordings(path, usable=self._usable)
        return path


def check_recordings(path: Path, *, usable: bool = False) -> None:
    """Raise NotARecording unless a path is a recording or a folder of recordings."""
    # imported late to keep the start of commands fast
    from kitchensync.storage.consent import Purpose, require_consent
    from kitchensync.storage.errors import NotARecording
    from kitchensync.storage.lab import share
    from kitchensync.storage.life import life_of
    from kitchensync.storage.names import recordings_in

    if not path.exists():
        raise NotARecording(path, "there is no such folder")
    share(path)
    if recordings_in(path) == [path]:
        if usable:
            require_consent(path, Purpose.LOOK)
        else:
            life_of(path)


def reason_given(_: click.Context, __: click.Parameter, reason: str | None) -> str:
    """Return the reason in one line, empty without the option. Raises click.BadParameter."""
    if reason is not None and not reason.strip():
        raise click.BadParameter("say why nobody's consent is needed")
    return " ".join((reason or "").split())


WITHOUT_CONSENT = click.option(
    "--without-consent",
    metavar="REASON",
    callback=reason_given,
    help="Use recordings too to which nobody agreed; the reason is kept. A withdrawal is never overridden.",
)
