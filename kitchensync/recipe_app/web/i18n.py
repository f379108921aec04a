"""Messages in the languages of the catalogues `locales/<language>.json`; the tablet's scripts read the same files.

A message is a text with `{names}`, or one text for each plural form of the language. A test fails for a missing
message. The pseudo-locale `xx` is made from English, so that untranslated text stands out.

Error messages have their English text as the key, in `locales/refusals/<language>.json`, which only the server reads.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from babel import Locale
from babel.numbers import format_decimal
from starlette.requests import HTTPConnection

from kitchensync.task_graphs.errors import RecipeError, Value, filled

FOLDER = Path(__file__).resolve().parent.parent / "locales"
ONLY_IN_TEMPLATES = frozenset(
    (
        *("audit", "collections", "consents", "coverage", "dumps", "list", "noscript", "override"),
        *("refusal", "workshop"),
    )
)
"""Prefixes of keys that no script uses: a tablet does not load them."""
LANGUAGES = {"en": "English", "de": "Deutsch", "ar": "العربية"}
PSEUDO = "xx"
LANGUAGE_COOKIE = "ks_language"

Message = str | dict[str, str]

_ACCENTS = str.maketrans("aceinouyACEINOUY", "áçéíñóúýÁÇÉÍÑÓÚÝ")


@cache
def catalogue(language: str) -> dict[str, Message]:
    """Return every message of a language; the pseudo-locale is English with accents, a third longer."""
    if language == PSEUDO:
        return {key: _pseudo(message) for key, message in catalogue("en").items()}
    content: dict[str, Message] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return content


@cache
def refusals(language: str) -> dict[str, str]:
    """Return the error messages of a language by their English text; empty for English."""
    if language == PSEUDO:
        return {text: str(_pseudo(text)) for text in refusals("de")}
    path = FOLDER / "refusals" / f"{language}.json"
    content: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if language != "en" else {}
    return content


def _pseudo(message: Message) -> Message:
    if isinstance(message, dict):
        return {form: str(_pseudo(text)) for form, text in message.items()}
    parts = re.split(r"(\{[a-z_]+(?:!r)?\})", message)
    accented = "".join(part if part.startswith("{") else part.translate(_ACCENTS) for part in parts)
    return f"⟦{accented}{'·' * (len(message) // 3)}⟧"


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

    def refusal(self, error: Exception) -> str:
        """Return the translated text of an error; in English without a translation, such as findings in a graph."""
        known = refusals(self.language)
        if not isinstance(error, RecipeError) or error.text not in known:
            return str(error)
        return filled(known[error.text], {name: self._shown(value) for name, value in error.values.items()})

    def _shown(self, value: Value) -> Value:
        if isinstance(value, tuple):
            known = refusals(self.language)
            return ("، " if self.language == "ar" else ", ").join(known.get(word, word) for word in value)
        return self.number(value) if isinstance(value, int) else value

    def number(self, value: int) -> str:
        """Format a number for the language."""
        return str(format_decimal(value, locale=self.locale))


def words_of(request: HTTPConnection) -> Words:
    """Return the messages in the language of a request; scripts send the language of their page."""
    requested = request.query_params.get("lang")
    accepted = request.headers.get("accept-language", "")
    return Words(choose_language(requested, request.cookies.get(LANGUAGE_COOKIE), accepted))


def choose_language(requested: str | None, cookie: str | None, accepted: str) -> str:
    """Return the requested language, else that of the cookie, else the browser's preference."""
    for chosen in (requested, cookie):
        if chosen in {*LANGUAGES, PSEUDO}:
            return str(chosen)
    weights: dict[str, float] = {}
    for part in accepted.split(",")[:20]:
        name, _, weight = part.strip().partition(";q=")
        language = name.partition("-")[0].lower()
        if language in LANGUAGES and re.fullmatch(r"[01](\.\d{0,3})?", weight or "1"):
            weights[language] = max(weights.get(language, 0.0), float(weight or 1))
    return max(weights, key=weights.__getitem__, default="en")
