"""Statistics as one self-contained page: numbers, and plots drawn as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recipe_app.releases.release_pages import render


def as_page(said: Mapping[str, Any], title: str) -> str:
    """Return the page, UTF-8; nothing in it is loaded from elsewhere."""
    recipes = said["table11"]["rows"].items()
    return render(
        "statistics.html.j2",
        title=title,
        said=said,
        recordings=[_bar(name, row["normal"], row["error"]) for name, row in recipes],
        hours=[_bar(name, row["normal_hours"], row["error_hours"]) for name, row in recipes],
        uses=[_bar(tag, 0, uses) for tag, uses in said["figure19"]["uses"].items()],
        stated={
            name: [_bar(word, count, 0) for word, count in counts.items()]
            for name, counts in said["stated"].items()
        },
    )


def _bar(name: str, first: float, second: float) -> dict[str, Any]:
    return {"name": name, "first": first, "sum": first + second}
