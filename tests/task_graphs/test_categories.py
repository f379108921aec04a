"""The table of error categories agrees with the pages, which repeat its numbers and names."""

from __future__ import annotations

import json
import re

from root_folders import PACKAGE

import kitchensync as ks
from kitchensync.task_graphs.categories import CATEGORIES, OTHER, TAG_OF_COLUMN, TAGS

STATIC = PACKAGE / "recipe_app" / "static"


def test_the_table_is_ordered_and_complete() -> None:
    assert [category.number for category in CATEGORIES] == list(range(8))
    assert (TAGS[2], TAGS[6], TAGS[OTHER]) == ("Order Error", "Missing Step", "Other")
    assert ks.ERROR_KINDS == tuple(TAG_OF_COLUMN) == tuple(category.column for category in CATEGORIES[:OTHER])
    assert all(category.deed and category.question for category in CATEGORIES[:OTHER])


def test_pages_have_a_name_an_icon_and_a_text_for_each_category() -> None:
    (names,) = re.findall(r"export const NAMES = (\[.*\]);", (STATIC / "views" / "frame.js").read_text())
    assert json.loads(names) == [category.name for category in CATEGORIES]
    icons = (STATIC / "icons.css").read_text()
    texts = json.loads((PACKAGE / "recipe_app" / "locales" / "en.json").read_text())
    for category in CATEGORIES:
        assert f".c{category.number} {{" in icons
        assert texts[f"category.{category.number}"]
        assert texts[f"category.{category.number}.hint"]
