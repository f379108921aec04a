"""Fill the templates of the pages; light, since the page of many recordings needs little of what one needs."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from sync.report.svg import glyph
from sync.report.words import clock, length, size


def render(page: dict[str, Any], template: str = "report.html.j2") -> str:
    """Fill a template; everything is escaped but the drawings made here."""
    environment = Environment(
        loader=PackageLoader("sync.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"clock": clock, "length": length, "size": size, "glyph": glyph}
    return environment.get_template(template).render(page)
