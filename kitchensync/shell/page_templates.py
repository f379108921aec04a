"""The Jinja environment of self-contained HTML pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kitchensync.shell.terminal import shown_in_page

if TYPE_CHECKING:
    from jinja2 import Environment


def page_environment(package: str) -> Environment:
    """Return the environment for the templates of a package: values are escaped, unknown names are errors."""
    import jinja2  # needs an extra, which commands without pages do not

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        finalize=shown_in_page,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
