"""Names that people choose for accounts, kitchens and tablets: no invisible characters, no look-alikes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from kitchensync.operations.errors import BadOperation

_UNSEEN = ("Cc", "Cf", "Cs")
"""Categories of Unicode: control, format (direction, zero width), lone surrogates."""

# Letters, casefolded, that most fonts draw like a Latin one, small or capital: Greek and others, then Cyrillic.
_AS_LATIN = str.maketrans(
    "\u0131\u0261\u03b1\u03b2\u03b3\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03c9"
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455"
    "\u0456\u0458\u0461\u0475\u04bb\u04cf\u0501\u051b",
    "igabyeznikmvoptuxwabekmhopctyxsijwvhldq",
)


def check_name(name: str) -> str:
    """Return a name with its spaces collapsed. Raises BadOperation."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 40:
        raise BadOperation("a name has 1 to 40 characters")
    if any(unicodedata.category(letter) in _UNSEEN for letter in name):
        raise BadOperation("a name has no control characters and no invisible ones; type it anew")
    return name


def look_alike(name: str, taken: Iterable[str]) -> str | None:
    """Return the taken name that people would confuse with this one, or None."""
    mine = _skeleton(name)
    return next((other for other in taken if _skeleton(other) == mine), None)


def _skeleton(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().translate(_AS_LATIN)
