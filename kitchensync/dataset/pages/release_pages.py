"""Render the HTML pages of a data set: self-contained, with all values escaped."""

from __future__ import annotations

from kitchensync.shell.page_templates import page_environment


def render(template: str, **facts: object) -> str:
    """Return a page, UTF-8; it loads nothing from other places."""
    return page_environment("kitchensync.dataset.pages").get_template(template).render(facts)
