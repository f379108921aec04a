"""Messages in the languages of the catalogues `locales/<language>.json`; the tablet's scripts read the same files.

A message is a text with `{names}`, or one text for each plural form of the language. A language without a message is
a mistake that a test finds; the pseudo-locale `xx` is made from English, so that untranslated text stands out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from babel import Locale
from babel.numbers import format_decimal

FOLDER = Path(__file__).resolve().parent.parent / "locales"
LANGUAGES = {"en": "English", "de": "Deutsch", "ar": "العربية"}
PSEUDO = "xx"

Message = str | dict[str, str]

_ACCENTS = str.maketrans("aceinouyACEINOUY", "áçéíñóúýÁÇÉÍÑÓÚÝ")


@cache
def catalogue(language: str) -> dict[str, Message]:
    """Return every message of a language; the pseudo-locale is English with accents and a third more room."""
    if language == PSEUDO:
        return {key: _pseudo(message) for key, message in catalogue("en").items()}
    content: dict[str, Message] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return content


def _pseudo(message: Message) -> Message:
    if isinstance(message, dict):
        return {form: str(_pseudo(text)) for form, text in message.items()}
    parts = re.split(r"(\{[a-z_]+\})", message)
    said = "".join(part if part.startswith("{") else part.translate(_ACCENTS) for part in parts)
    return f"⟦{said}{'·' * (len(message) // 3)}⟧"


class Words:
    """The messages of one language, for templates: `t("key", count=3)`."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.locale = Locale.parse("en" if language == PSEUDO else language)
        self.direction = "rtl" if self.locale.text_direction == "rtl" else "ltr"

    def __call__(self, key: str, **values: Any) -> str:
        """Return a message with its values; `count` chooses the plural form."""
        message = catalogue(self.language)[key]
        if isinstance(message, dict):
            form = self.locale.plural_form(values["count"])
            message = message.get(form, message["other"])
        shown = {
            name: self.number(value) if isinstance(value, int) else value for name, value in values.items()
        }
        return message.format_map(shown)

    def number(self, value: int) -> str:
        """Write a number in the manner of the language."""
        return str(format_decimal(value, locale=self.locale))


def choose_language(asked: str | None, cookie: str | None, accepted: str) -> str:
    """Return the language that was asked for, else the one chosen before, else what the browser likes."""
    known = {*LANGUAGES, PSEUDO}
    for found in (asked, cookie):
        if found in known:
            return str(found)
    wanted = sorted(_weights(accepted).items(), key=lambda item: -item[1])
    return next((name for name, _ in wanted if name in LANGUAGES), "en")


def _weights(accepted: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for part in accepted.split(",")[:20]:
        name, _, weight = part.strip().partition(";q=")
        language = name.partition("-")[0].lower()
        if re.fullmatch(r"[01](\.\d{0,3})?", weight or "1"):
            found[language] = max(found.get(language, 0.0), float(weight or 1))
    return found
