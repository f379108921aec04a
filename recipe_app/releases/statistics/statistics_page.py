"""Statistics as one self-contained page: numbers, and plots drawn as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

LABEL_PX, BAR_PX, ROW_PX = 230, 520, 22
COLOURS = ("#3a7d6b", "#c8553d")
"""Of the first and the second number of a bar."""

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .2rem .8rem; text-align: right }
th:first-child, td:first-child { text-align: left } tr + tr { border-top: 1px solid #ddd }
svg { max-width: 100%; height: auto } svg text { font: 13px system-ui, sans-serif; fill: #222 }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .3em }
"""


def as_page(said: Mapping[str, Any], title: str) -> str:
    """Return the page, UTF-8; nothing in it is loaded from elsewhere."""
    rows = said["table11"]["rows"]
    body = [
        f"<h1>{escape(title)}</h1>",
        _facts(said),
        "<h2>Recordings by recipe</h2>",
        _key(),
        _bars({name: (row["normal"], row["error"]) for name, row in rows.items()}),
        "<h2>Hours by recipe</h2>",
        _key(),
        _bars({name: (row["normal_hours"], row["error_hours"]) for name, row in rows.items()}),
        "<h2>Errors by category</h2><p>How often each tag was given.</p>",
        _bars({tag: (0, uses) for tag, uses in said["figure19"]["uses"].items()}),
        _table(
            ("category", "uses", "entries", "recordings"),
            (
                (tag, uses, said["figure19"]["entries"][tag], said["figure19"]["recordings"][tag])
                for tag, uses in said["figure19"]["uses"].items()
            ),
        ),
        "<h2>Clips of several segments</h2>",
        _table(
            ("segments", "clips", "seconds"),
            ((size, row["clips"], row["seconds"]) for size, row in said["windows"].items()),
        ),
        *_stated(said["stated"]),
        *_disagreements(said["sources"]),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _facts(said: Mapping[str, Any]) -> str:
    total, numbers = said["table11"]["total"], said["table12"]
    rows = [
        ("recordings", said["recordings"]),
        ("without errors", f"{total['normal']} ({total['normal_hours']} hours)"),
        ("with errors", f"{total['error']} ({total['error_hours']} hours)"),
        ("steps of all recipes", total["steps"]),
        ("segments (steps that were done)", numbers["segments"]),
        ("segments with errors", numbers["segments_with_errors"]),
        ("mean length of a segment", f"{numbers['average_segment_seconds']} s"),
        ("mean length of a film", f"{numbers['average_video_minutes']} min"),
    ]
    return _table(("", ""), rows)


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _key() -> str:
    words = zip(COLOURS, ("without errors", "with errors"), strict=True)
    shown = (f'<span class="key" style="background:{colour}"></span>{name}' for colour, name in words)
    return f"<p>{' &nbsp; '.join(shown)}</p>"


def _bars(rows: Mapping[str, tuple[float, float]]) -> str:
    """Draw a row for each name: two numbers behind each other on one scale, with their sum."""
    most = max((sum(pair) for pair in rows.values()), default=0) or 1
    drawn = []
    for place, (name, pair) in enumerate(rows.items()):
        top, x = place * ROW_PX, float(LABEL_PX)
        drawn.append(f'<text x="{LABEL_PX - 8}" y="{top + 15}" text-anchor="end">{escape(name)}</text>')
        for value, colour in zip(pair, COLOURS, strict=True):
            width = BAR_PX * value / most
            drawn.append(
                f'<rect x="{x:.1f}" y="{top + 3}" width="{width:.1f}" height="{ROW_PX - 6}" fill="{colour}"/>'
            )
            x += width
        drawn.append(f'<text x="{x + 6:.1f}" y="{top + 15}">{round(sum(pair), 2):g}</text>')
    size = f"0 0 {LABEL_PX + BAR_PX + 70} {len(rows) * ROW_PX}"
    return f'<svg viewBox="{size}" role="img">{"".join(drawn)}</svg>'


def _stated(stated: Mapping[str, Mapping[str, int]]) -> list[str]:
    made = []
    for name, counts in stated.items():
        made += [f"<h2>{escape(name.capitalize())}</h2>", _bars({word: (n, 0) for word, n in counts.items()})]
    return made


def _disagreements(sources: Mapping[str, Any]) -> list[str]:
    """Say where two sources count differently, with both counts."""
    made = []
    for about, found in sources.items():
        if found["differ"]:
            counts = ((name, count) for name, count in found.items() if name != "differ")
            made += [
                f"<h2>Two sources, two counts: {escape(about)}</h2>",
                _table(("source", "count"), counts),
            ]
            made.append(f"<p>They differ in {escape(', '.join(found['differ']))}.</p>")
    return made
