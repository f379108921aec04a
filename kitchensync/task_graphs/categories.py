"""The error categories of CaptainCook4D, with their names in tables, pages and questions."""

from __future__ import annotations

from typing import NamedTuple


class Category(NamedTuple):
    """One category. Its icon is the class `c<number>` of `icons.css`; its translated name is `category.<number>`."""

    number: int
    name: str
    tag: str
    "The published name."
    column: str
    "Column of tables; empty for Other."
    deed: str = ""
    "The error, in questions to models."
    question: str = ""
    "The cook's question, in questions about a video."


CATEGORIES = (
    Category(
        0, "Preparation", "Preparation Error", "preparation",
        "make a preparation error (a wrong, soiled or wrongly prepared ingredient or tool)",
        "Did I prepare everything for this step as I should?",
    ),
    Category(
        1, "Measurement", "Measurement Error", "measurement",
        "make a measurement error (a wrong amount)",
        "Did I measure as I should in this step?",
    ),
    Category(
        2, "Order", "Order Error", "order",
        "make an order error (the step was done before or after its turn)",
        "Did I do this step in the right order?",
    ),
    Category(
        3, "Timing", "Timing Error", "timing",
        "make a timing error (too long or too short)",
        "Did this step take as long as it should?",
    ),
    Category(
        4, "Technique", "Technique Error", "technique",
        "make a technique error (the step was carried out in a wrong way)",
        "Did I do this step as I should?",
    ),
    Category(
        5, "Temperature", "Temperature Error", "temperature",
        "make a temperature error (a wrong level of heat or power)",
        "Was it as hot as it should be in this step?",
    ),
    Category(
        6, "Missing step", "Missing Step", "missing",
        "leave out all or a part of it",
        "Did I leave out a step so far? Which one?",
    ),
    Category(7, "Other", "Other", ""),
)  # fmt: skip
OTHER = 7
TAGS = tuple(category.tag for category in CATEGORIES)
"""The published names, by number."""
TAG_OF_COLUMN = {category.column: category.tag for category in CATEGORIES if category.column}
