"""Statistics as CSV files: recipes, errors by category, windows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any


def as_tables(said: dict[str, Any]) -> dict[str, str]:
    """Return file name -> text of each table."""
    return {
        "recipes.csv": _table(
            ("recipe", "steps", "normal", "normal_hours", "error", "error_hours"),
            (
                (name, row["steps"], row["normal"], row["normal_hours"], row["error"], row["error_hours"])
                for name, row in said["table11"]["rows"].items()
            ),
        ),
        "errors.csv": _table(
            ("category", "uses", "entries", "recordings"),
            (
                (tag, uses, said["figure19"]["entries"][tag], said["figure19"]["recordings"][tag])
                for tag, uses in said["figure19"]["uses"].items()
            ),
        ),
        "errors_by_recipe.csv": _table(
            ("recipe", "category", "uses"),
            (
                (recipe, tag, uses)
                for recipe, counts in said["figure19"]["per_recipe"].items()
                for tag, uses in counts.items()
            ),
        ),
        "windows.csv": _table(
            ("segments", "clips", "seconds"),
            ((size, row["clips"], row["seconds"]) for size, row in said["windows"].items()),
        ),
    }


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
