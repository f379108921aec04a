"""Lines of recipes with their amounts and seconds, which server and tablet must read in the same way."""

from __future__ import annotations

from fractions import Fraction

NO_TIME: tuple[int, int] | None = None
AMOUNTS: dict[str, list[str]] = {
    "Add 1/2 tsp salt": ["1/2"],
    "Add 1⁄2 tsp salt": ["1/2"],
    "Add ½ tsp salt": ["1/2"],
    "Add 1½ cups flour": ["3/2"],
    "Add 1 ½ tsp sugar": ["3/2"],
    "Add 1\u00a0½ tsp sugar": ["3/2"],
    "Add 1 1⁄2 cups milk": ["3/2"],
    "Add 1-1/2 cups milk": ["3/2"],
    "Add 2⅔ cups water": ["8/3"],
    "Add .5 l milk": ["1/2"],
    "Add 0,5 l milk": ["1/2"],
    "Add 2,5 g yeast": ["5/2"],
    "Add 0,125 l milk": ["1/8"],
    "Add 1,000 ml water": ["1000"],
    "Add 1,250 g flour": ["1250"],
    "Add 1,250 kg flour": [],
    "Add 1.500 g flour": [],
    "Add 1,2,3 cups": [],
    "Add 1/0 cups": [],
    "Add 1/2/3 cups": [],
    "Add 1—2 tbsp oil": ["1", "2"],
    "Add 1-1½ tbsp oil": ["1", "3/2"],
    "Add ½–1 tsp salt": ["1/2", "1"],
    "Add 1 to 1 1/2 cups of rice": ["1", "3/2"],
    "2 bis 3 EL Öl erhitzen": ["2", "3"],
    "Add half a cup of milk": ["1/2"],
    "Add one and a half cups of milk": ["3/2"],
    "Cut in half a potato": [],
    "Add two eggs": ["2"],
    "Add 400g flour": ["400"],
    "Season to taste": [],
}
"""text -> the amount, or both ends of a range, or nothing if it is ambiguous."""
SECONDS: dict[str, tuple[int, int] | None] = {
    "Simmer for ½ hour": (1800, 1800),
    "Simmer for 1⁄2 hour": (1800, 1800),
    "Simmer 1 ½ hours": (5400, 5400),
    "Cook 1 1⁄2 minutes": (90, 90),
    "Bake 1,5 hours": (5400, 5400),
    "Bake 1½-2 hours": (5400, 7200),
    "Cook for 1 to 1½ minutes": (60, 90),
    "Cook 8—10 minutes": (480, 600),
    "Boil 10min": (600, 600),
    "Boil 10 min.": (600, 600),
    "Microwave for 30-second bursts": (30, 30),
    "Boil a 6-minute egg": (360, 360),
    "Chill for 1 hour 30 minutes": (5400, 5400),
    "Chill for 1 hr 15 min": (4500, 4500),
    "Chill for 1h": (3600, 3600),
    "Wait half a minute": (30, 30),
    "Rest for half an hour": (1800, 1800),
    "Rest for a quarter of an hour": (900, 900),
    "Rest for one and a half hours": (5400, 5400),
    "Rest 1,200 seconds": (1200, 1200),
    "Rest 1.200 seconds": NO_TIME,
    "Microwave 1m30s": NO_TIME,
    "Rest overnight": NO_TIME,
    "Cook 1/0 minutes": NO_TIME,
}


def numbers(amounts: list[str]) -> list[Fraction]:
    """Return the amounts of a line as exact fractions."""
    return [Fraction(amount) for amount in amounts]
