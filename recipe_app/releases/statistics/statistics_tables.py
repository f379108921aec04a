"""Statistics as CSV files: recipes, errors by category, windows."""

from __future__ import annotations

from typing import Any

from recipe_app.releases.tables.csv_text import csv_text


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
