"""Render the HTML pages of a data set: self-contained, with all values escaped."""

from __future__ import annotations

from kitchensync.shell.terminal import shown_in_page


def render(template: str, **facts: object) -> str:
    """Return a page, UTF-8; it loads nothing from other places."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # needs an extra, most commands do not

    environment = Environment(
        loader=PackageLoader("kitchensync.dataset.pages"),
        autoescape=True,
        finalize=shown_in_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(facts)
