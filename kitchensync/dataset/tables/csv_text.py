"""Rows as CSV with minimal quoting and lines that end with LF."""

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
    """Return one cell, quoted if necessary."""
    return csv_text((text,), ()).removesuffix("\n")
