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
    recipes, errors = said["table11"]["rows"].items(), said["figure19"]
    columns = ("steps", "normal", "normal_hours", "error", "error_hours")
    uses = [
        (tag, uses, errors["entries"][tag], errors["recordings"][tag]) for tag, uses in errors["uses"].items()
    ]
    of_recipes = [(name, *one) for name, counts in errors["per_recipe"].items() for one in counts.items()]
    stated = [(name, *one) for name, counts in said["stated"].items() for one in counts.items()]
    windows = [(size, row["clips"], row["seconds"]) for size, row in said["windows"].items()]
    rows = [(name, *(row[column] for column in columns)) for name, row in recipes]
    return {
        "recipes.csv": csv_text(("recipe", *columns), rows),
        "errors.csv": csv_text(("category", "uses", "entries", "recordings"), uses),
        "errors_by_recipe.csv": csv_text(("recipe", "category", "uses"), of_recipes),
        "stated.csv": csv_text(("of", "word", "count"), stated),
        "windows.csv": csv_text(("segments", "clips", "seconds"), windows),
    }
