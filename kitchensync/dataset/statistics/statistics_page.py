"""Statistics as one self-contained page, with plots drawn as SVG, and as CSV files."""

from __future__ import annotations

from collections.abc import Mapping

from kitchensync.dataset.pages.release_pages import render
from kitchensync.dataset.statistics.statistics_numbers import DataSetStatistics
from kitchensync.dataset.tables.csv_text import csv_text


def as_page(statistics: DataSetStatistics, title: str) -> str:
    """Return the page, UTF-8; it loads nothing from other places."""
    recipes = statistics["table11"]["rows"].items()
    return render(
        "statistics.html.j2",
        title=title,
        statistics=statistics,
        recordings=[_bar(name, row["normal"], row["error"]) for name, row in recipes],
        hours=[_bar(name, row["normal_hours"], row["error_hours"]) for name, row in recipes],
        uses=[_bar(tag, 0, uses) for tag, uses in statistics["figure19"]["uses"].items()],
        stated={
            name: [_bar(value, count, 0) for value, count in counts.items()]
            for name, counts in statistics["stated"].items()
        },
    )


def _bar(name: str, first: float, second: float) -> dict[str, str | float]:
    return {"name": name, "first": first, "sum": first + second}


def as_tables(statistics: DataSetStatistics) -> dict[str, str]:
    """Return file name -> text of each table."""
    recipes: Mapping[str, Mapping[str, object]] = statistics["table11"]["rows"]
    errors = statistics["figure19"]
    columns = ("steps", "normal", "normal_hours", "error", "error_hours")
    uses = [
        (tag, uses, errors["entries"][tag], errors["recordings"][tag]) for tag, uses in errors["uses"].items()
    ]
    of_recipes = [(name, *item) for name, counts in errors["per_recipe"].items() for item in counts.items()]
    stated = [(name, *item) for name, counts in statistics["stated"].items() for item in counts.items()]
    windows = [(size, row["clips"], row["seconds"]) for size, row in statistics["windows"].items()]
    rows = [(name, *(row[column] for column in columns)) for name, row in recipes.items()]
    return {
        "recipes.csv": csv_text(("recipe", *columns), rows),
        "errors.csv": csv_text(("category", "uses", "entries", "recordings"), uses),
        "errors_by_recipe.csv": csv_text(("recipe", "category", "uses"), of_recipes),
        "stated.csv": csv_text(("of", "word", "count"), stated),
        "windows.csv": csv_text(("segments", "clips", "seconds"), windows),
    }
