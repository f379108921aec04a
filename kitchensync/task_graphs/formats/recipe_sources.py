"""Stage 1 of a new graph: find the recipe in plain text, in Cooklang (`.cook`) and in schema.org JSON-LD."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any

from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.strict_json import MAX_NODES, load, refuse_half_letters
from kitchensync.task_graphs.model import Span, SpanKind
from kitchensync.task_graphs.text.plain_lines import NUMBERED, RecipeLine, read_lines
from kitchensync.task_graphs.text.recipe_text import Passage, Selected


def select_plain(text: str, *, name: str) -> Selected:
    """Select from plain text: what is recognised as title, ingredient or step; the rest says nothing to do."""
    lines = read_lines(text)
    if not lines:
        raise BadGraph(name, "", "has no text")
    return selected_of(lines, name=name)


def selected_of(lines: Sequence[RecipeLine], *, name: str) -> Selected:
    """Select from recognised lines. Raises BadGraph where none of them is a step."""
    title = " ".join(line.text for line in lines if line.kind == "title")
    steps = [Passage(line.text) for line in lines if line.kind == "step"]
    ingredients = tuple(line.text for line in lines if line.kind == "ingredient")
    return _selected(name, title, steps, ingredients)


def _selected(
    name: str, title: str, passages: list[Passage], ingredients: tuple[str, ...], **more: str
) -> Selected:
    if not passages:
        what = "no sentence was recognized; put the heading `Instructions` above those that say what to do"
        raise BadGraph(name, "", f"has no instructions: {what}")
    if len(passages) > MAX_NODES:
        raise BadGraph(name, "", f"{len(passages)} passages; at most {MAX_NODES} are possible")
    slug = re.sub(r"[^a-z0-9]+", "-", (title or name.rpartition(".")[0] or name).lower()).strip("-")
    return Selected(title, tuple(passages), ingredients, recipe=slug, **more)


_MARK = re.compile(
    r"(?P<sign>[@#~])(?P<flags>[&?+\-]*)(?:"
    r"(?P<long>(?:\./)?[^@#~{}\n]*?)\{(?P<amount>[^{}\n]*)\}|(?P<short>[\w\u00c0-\uffff]+))"
    r"(?:\((?P<note>[^()\n]*)\))?"
)


def select_cooklang(text: str, *, name: str) -> Selected:
    """Select from Cooklang: marked ingredients, cookware and timers become typed spans, a paragraph a passage."""
    body, facts = _metadata(text.replace("\r\n", "\n"))
    body = re.sub(r"\[-.*?-\]", "", body, flags=re.DOTALL)
    body = re.sub(r"(?m)--.*$", "", body)
    passages, ingredients = [], []
    for paragraph in re.split(r"\n\s*\n", body):
        lines = [line for line in paragraph.split("\n") if not re.match(r"\s*(?:=+.*|>.*)$", line)]
        joined = " ".join(" ".join(lines).split())
        if joined:
            passage, found = _unmark(joined)
            passages.append(passage)
            ingredients += found
    source = facts.get("source", "") or facts.get("source.url", "")
    title = facts.get("title", "") or name.removesuffix(".cook").replace("_", " ")
    return _selected(
        name, title, passages, tuple(ingredients), source=source, language=facts.get("locale", "")[:2]
    )


def _metadata(text: str) -> tuple[str, dict[str, str]]:
    facts: dict[str, str] = {}
    if front := re.match(r"---\n(.*?)\n---\s*(?:\n|$)", text, re.DOTALL):
        text, lines = text[front.end() :], front.group(1).split("\n")
    else:
        lines = [line[2:] for line in re.findall(r"(?m)^>>.*$", text)]
        text = re.sub(r"(?m)^>>.*$", "", text)
    for line in lines:
        key, colon, value = line.partition(":")
        if colon:
            facts[key.strip().lower()] = value.strip().strip("\"'")
    return text, facts


def _unmark(text: str) -> tuple[Passage, list[str]]:
    """Write the marks out as people read them, and remember what each piece is."""
    out, spans, ingredients, at = "", list[Span](), list[str](), 0
    for found in _MARK.finditer(text):
        out += text[at : found.start()]
        for kind, piece in _parts(found):
            if kind is not None:
                spans.append(Span(kind, len(out), len(out) + len(piece)))
            out += piece
        if found["sign"] == "@":
            ingredients.append("".join(piece for _, piece in _parts(found)))
        at = found.end()
    return Passage(out + text[at:], tuple(spans)), ingredients


def _parts(found: re.Match[str]) -> Iterator[tuple[SpanKind | None, str]]:
    name = (found["short"] or found["long"] or "").removeprefix("./").rpartition("/")[2].strip()
    name = name.partition("|")[0]
    number, _, unit = (part.strip().lstrip("=") for part in (found["amount"] or "").partition("%"))
    if found["sign"] == "~":
        yield "duration", " ".join(part for part in (number, unit) if part) or name
        return
    if number:
        yield "amount", number
        yield None, " "
    if unit:
        yield "unit", unit
        yield None, " "
    yield ("ingredient" if found["sign"] == "@" else "tool"), name
    if found["note"]:
        yield None, f" ({found['note']})"


def select_json_ld(text: str, *, name: str) -> Selected:
    """Select from a schema.org Recipe in JSON-LD, alone or inside a saved web page."""
    for document in _documents(text, name):
        if recipe := _find_recipe(document):
            passages = [Passage(said) for said in _instructions(recipe.get("recipeInstructions")) if said]
            given = recipe.get("recipeIngredient", recipe.get("ingredients", []))
            ingredients = tuple(_plain(one) for one in (given if isinstance(given, list) else [given]))
            language, source = recipe.get("inLanguage", ""), recipe.get("url", "")
            return _selected(
                name,
                _plain(recipe.get("name", "")),
                passages,
                ingredients,
                source=source if isinstance(source, str) else "",
                language=language[:2] if isinstance(language, str) else "",
            )
    raise BadGraph(name, "", 'no schema.org Recipe in it; expected an object with "@type": "Recipe"')


class _Scripts(HTMLParser):
    """Collect the JSON-LD scripts of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and (dict(attrs).get("type") or "").lower() == "application/ld+json"
        if self._inside:
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1] += data


def _documents(text: str, name: str) -> Iterator[Any]:
    if not text.lstrip().startswith("<"):
        yield load(text, name)
        return
    page = _Scripts()
    page.feed(text)
    for script in page.found:
        try:
            found = json.loads(script)
            refuse_half_letters(found, script, name)
        except (ValueError, RecursionError) as error:
            raise BadGraph(name, "", f"its JSON-LD is not JSON ({error})") from error
        yield found


def _find_recipe(value: Any) -> dict[str, Any] | None:
    if isinstance(value, list):
        return next((found for one in value if (found := _find_recipe(one))), None)
    if not isinstance(value, dict):
        return None
    types = value.get("@type", [])
    if "Recipe" in (types if isinstance(types, list) else [str(types).rpartition("/")[2]]):
        return value
    return _find_recipe(value.get("@graph", []))


def _instructions(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (_plain(line) for line in re.split(r"\n+|<br\s*/?>|</p>|</li>", value))
    elif isinstance(value, list):
        for one in value:
            yield from _instructions(one)
    elif isinstance(value, dict):
        inside = value.get("itemListElement")
        yield from _instructions(inside if inside is not None else value.get("text", value.get("name", "")))


def _plain(value: Any) -> str:
    text = re.sub(r"<[^>]*>", " ", html.unescape(str(value)))
    return NUMBERED.sub("", " ".join(html.unescape(text).split()))
