"""Statistics as one self-contained page, with plots drawn as SVG, and as CSV files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kitchensync.dataset.pages.release_pages import render
from kitchensync.dataset.tables.csv_text import csv_text


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


def as_tables(said: dict[str, Any]) -> dict[str, str]:
    """Return file name -> text of each table."""
    return {
        "recipes.csv": csv_text(
            ("recipe", "steps", "normal", "normal_hours", "error", "error_hours"),
            (
                (name, row["steps"], row["normal"], row["normal_hours"], row["error"], row["error_hours"])
                for name, row in said["table11"]["rows"].items()
            ),
        ),
        "errors.csv": csv_text(
            ("category", "uses", "entries", "recordings"),
            (
                (tag, uses, said["figure19"]["entries"][tag], said["figure19"]["recordings"][tag])
                for tag, uses in said["figure19"]["uses"].items()
            ),
        ),
        "errors_by_recipe.csv": csv_text(
            ("recipe", "category", "uses"),
            (
                (recipe, tag, uses)
                for recipe, counts in said["figure19"]["per_recipe"].items()
                for tag, uses in counts.items()
            ),
        ),
        "stated.csv": csv_text(
            ("of", "word", "count"),
            ((name, word, n) for name, counts in said["stated"].items() for word, n in counts.items()),
        ),
        "windows.csv": csv_text(
            ("segments", "clips", "seconds"),
            ((size, row["clips"], row["seconds"]) for size, row in said["windows"].items()),
        ),
    }
