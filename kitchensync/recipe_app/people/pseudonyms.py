"""Pseudonyms: checked to be one word, against full names; and a free one to suggest."""

from __future__ import annotations

from collections.abc import Collection

from kitchensync.operations.errors import BadOperation

_WORDS = (
    "Basil Thyme Rosemary Sage Mint Parsley Chive Dill Tarragon Oregano Marjoram Saffron Cumin "
    "Fennel Clove Nutmeg Ginger Paprika Sumac Vanilla Cardamom Anise Chervil Lovage Sorrel Caraway "
    "Turmeric Juniper Lavender Savory Borage Coriander Mustard Pepper Chili Cinnamon Sesame Poppy "
    "Laurel Caper"
)
FREE = tuple(_WORDS.split())


def check_pseudonym(text: str) -> str:
    """Return a stripped pseudonym. Raises BadOperation for more than one word, which may be a real name."""
    words = text.split()
    if len(words) != 1:
        raise BadOperation("a pseudonym is one word; a person's real name does not belong in this app")
    return words[0]


def suggest(taken: Collection[str]) -> str:
    """Return an unused pseudonym, with a number when all words are taken."""
    known = {pseudonym.casefold() for pseudonym in taken}
    for number in range(1, len(known) + 2):
        for word in FREE:
            name = word if number == 1 else f"{word}-{number}"
            if name.casefold() not in known:
                return name
    raise AssertionError("more words than people")
