"""The eight kinds of error of CaptainCook4D, by their published ids."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Category:
    """One kind of error; `hint` is what the tile says under its name."""

    number: int
    name: str
    hint: str


CATEGORIES = (
    Category(0, "Preparation", "wrong thing or tool"),
    Category(1, "Measurement", "wrong amount"),
    Category(2, "Order", "too early or too late"),
    Category(3, "Timing", "too short or too long"),
    Category(4, "Technique", "done another way"),
    Category(5, "Temperature", "too hot or too cold"),
    Category(6, "Missing step", "left out"),
    Category(7, "Other", "anything else"),
)
