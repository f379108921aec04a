"""Rows as CSV: quotes only where a cell needs them, lines that end with a newline alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as text, its header first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def csv_cell(text: str) -> str:
    """Return one cell as it stands in a table."""
    return csv_text((text,), ()).removesuffix("\n")
