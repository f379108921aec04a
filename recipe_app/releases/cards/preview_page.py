"""index.html of a data set: a static page with a picture of each recording; it loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from urllib.parse import quote

from recipe_app.graphs.formats.annotations import AnnotatedRecording
from recipe_app.releases.cards.card_facts import Facts

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222 }
ul { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1rem }
ul { padding: 0; list-style: none }
img, .none { width: 100%; aspect-ratio: 16 / 9; object-fit: cover; background: #e4e4e4; display: block }
b { display: block } small { color: #555 }
"""


def as_preview_page(facts: Facts, pictures: Mapping[str, str]) -> str:
    """Return the page; `pictures` has the path of a picture by recording id."""
    items = "\n".join(_item(facts, one, pictures) for one in facts.data.annotations.recordings)
    title = escape(facts.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n<body>\n'
        f"<h1>{title}</h1>\n<p>{escape(facts.description)}</p>\n<ul>\n{items}\n</ul>\n</body></html>\n"
    )


def _item(facts: Facts, one: AnnotatedRecording, pictures: Mapping[str, str]) -> str:
    seconds = facts.data.lengths_s.get(one.recording_id)
    length = f"{seconds / 60:.1f} min, " if seconds is not None else ""
    wrong = sum(bool(entry.errors) for entry in one.entries)
    said = f"{length}{len(one.entries)} steps, {wrong} with errors"
    shown = '<span class="none"></span>'
    if picture := pictures.get(one.recording_id):
        shown = f'<img src="{quote(picture)}" alt="A picture of {escape(one.recording_id)}" loading="lazy">'
    name = escape(f"{one.recording_id} {one.activity_name}")
    return f"<li>{shown}<b>{name}</b><small>{escape(said)}</small></li>"
