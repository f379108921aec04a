"""The site of the documents: every page is in its contents, every link leads somewhere, nothing is fetched."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from generate import BUILT, DOCS

REPOSITORY = Path(__file__).resolve().parents[2]
CONTENTS = tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]


def pages_in(contents: Any) -> Iterator[str]:
    """Yield the pages of a table of contents, those of its sections too."""
    for entry in contents:
        if isinstance(entry, str):
            yield entry
            continue
        for below in entry.values():
            yield from pages_in([below] if isinstance(below, str) else below)


class Targets(HTMLParser):
    """What a page shows, runs or links to, and the names that can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.add(found["href"])
        elif tag in ("img", "script", "source", "iframe") and found.get("src"):
            self.fetched.add(found["src"])
        elif tag == "link" and found.get("rel") != "canonical" and found.get("href"):
            self.fetched.add(found["href"])


def test_every_page_is_in_the_table_of_contents_once():
    listed = list(pages_in(CONTENTS))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | set(BUILT)
    pages -= {page for page in pages if page.startswith("decisions/")} - {"decisions/README.md"}
    pages |= {f"notebooks/{path.stem}.md" for path in (REPOSITORY / "examples" / "notebooks").glob("*.ipynb")}
    assert sorted(listed) == sorted(pages)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_link_of_the_site_leads_somewhere_and_nothing_comes_from_elsewhere(tmp_path):
    build = [sys.executable, REPOSITORY / "tools" / "site.py", tmp_path / "site"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    html = tmp_path / "site" / "html"
    pages = {path.resolve(): Targets(path.read_text(encoding="utf-8")) for path in html.rglob("*.html")}
    assert (html / "notebooks" / "first-look.html").resolve() in pages
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin where a server shows it
            continue
        wrong += [
            f"{path.name} fetches {one}" for one in page.fetched if urlsplit(one).scheme not in ("", "data")
        ]
        for one in page.fetched | page.links:
            parts = urlsplit(one)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            names = pages[target].names if target in pages else {parts.fragment}
            is_there = target.is_file() and parts.fragment in names | {""}
            wrong += [] if is_there else [f"{path.name}: {one}"]
    assert wrong == []
