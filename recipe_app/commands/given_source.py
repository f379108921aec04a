"""How commands take what a data set is made of: recordings, or a folder in the published form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from storage.shell.given_recording import GivenRecording


class GivenSource(GivenRecording):
    """Recordings, or a folder in the published form."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises NotARecording."""
        from recipe_app.releases.data_set_folder import is_published

        path = Path(value)
        return path.resolve() if is_published(path) else super().convert(value, param, ctx)
