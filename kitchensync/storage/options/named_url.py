"""`NAME=URL` on a command line: where the camera of that name is reached now."""

from __future__ import annotations

import click


class NamedUrl(click.ParamType):
    """A camera's name in a recording and its address."""

    name = "NAME=URL"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split at the first `=`; anything else is wrong usage."""
        from kitchensync.sensors.gopro.control.open_camera import SCHEMES

        if isinstance(value, tuple):
            return value
        name, equals, url = str(value).partition("=")
        if not equals or not name or not url.startswith(SCHEMES):
            self.fail(f"{value!r} is not NAME=URL with one of {', '.join(SCHEMES)}", param, ctx)
        return name, url


NAMED_URL = NamedUrl()
