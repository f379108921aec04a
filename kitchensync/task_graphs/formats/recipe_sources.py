"""Stage 1 of a new graph: select the recipe from plain text, Cooklang (`.cook`) or schema.org JSON-LD."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any

from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.strict_json import MAX_NODES, load, refuse_lone_surrogates
from kitchensync.task_graphs.model import Span, SpanKind
from kitchensync.task_graphs.text.plain_lines import NUMBERED, RecipeLine, read_lines
from kitchensync.task_graphs.text.recipe_text import Passage, Selected


def select_plain(text: str, *, name: str) -> Selected:
    """Select from plain text the lines that are title, ingredients or steps. Raises BadGraph."""
    lines = read_lines(text)
    if not lines:
        raise BadGraph(name, "", "has no text")
    return selected_of(lines, name=name)


def selected_of(lines: Sequence[RecipeLine], *, name: str) -> Selected:
    """Select from recognised lines. Raises BadGraph if none of them is a step."""
    title = " ".join(line.text for line in lines if line.kind == "title")
    steps = [Passage(line.text) for line in lines if line.kind == "step"]
    ingredients = tuple(line.text for line in lines if line.kind == "ingredient")
    return _selected(name, title, steps, ingredients)


def _selected(
    name: str, title: str, passages: list[Passage], ingredients: tuple[str, ...], **more: str
) -> Selected:
    if not passages:
        why = (
            "has no instructions: no sentence was recognized; put the heading `Instructions` above the steps"
        )
        raise BadGraph(name, "", why)
    if len(passages) > MAX_NODES:
        raise BadGraph(name, "", f"{len(passages)} passages; the limit is {MAX_NODES}")
    slug = re.sub(r"[^a-z0-9]+", "-", (title or name.rpartition(".")[0] or name).lower()).strip("-")
    return Selected(title, tuple(passages), ingredients, recipe=slug, **more)


_MARK = re.compile(
    r"(?P<sign>[@#~])(?P<flags>[&?+\-]*)(?:"
    r"(?P<long>(?:\./)?[^@#~{}\n]*?)\{(?P<amount>[^{}\n]*)\}|(?P<short>[\w\u00c0-\uffff]+))"
    r"(?:\((?P<note>[^()\n]*)\))?"
)


def select_cooklang(text: str, *, name: str) -> Selected:
    """Select from Cooklang: marked ingredients, cookware and timers become spans, paragraphs become passages."""
    body, facts = _metadata(text.replace("\r\n", "\n"))
    body = re.sub(r"\[-.*?-\]", "", body, flags=re.DOTALL)
    body = re.sub(r"(?m)--.*$", "", body)
    passages, ingredients = [], []
    for paragraph in re.split(r"\n\s*\n", body):
        lines = [line for line in paragraph.split("\n") if not re.match(r"\s*(?:=+.*|>.*)$", line)]
        joined = " ".join(" ".join(lines).split())
        if joined:
            passage, marked = _unmark(joined)
            passages.append(passage)
            ingredients += marked
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
    """Replace the marks by readable text; return it with its spans, and the ingredients."""
    out, spans, ingredients, at = "", list[Span](), list[str](), 0
    for mark in _MARK.finditer(text):
        out += text[at : mark.start()]
        for kind, piece in _parts(mark):
            if kind is not None:
                spans.append(Span(kind, len(out), len(out) + len(piece)))
            out += piece
        if mark["sign"] == "@":
            ingredients.append("".join(piece for _, piece in _parts(mark)))
        at = mark.end()
    return Passage(out + text[at:], tuple(spans)), ingredients


def _parts(mark: re.Match[str]) -> Iterator[tuple[SpanKind | None, str]]:
    name = (mark["short"] or mark["long"] or "").removeprefix("./").rpartition("/")[2].strip()
    name = name.partition("|")[0]
    number, _, unit = (part.strip().lstrip("=") for part in (mark["amount"] or "").partition("%"))
    if mark["sign"] == "~":
        yield "duration", " ".join(part for part in (number, unit) if part) or name
        return
    if number:
        yield "amount", number
        yield None, " "
    if unit:
        yield "unit", unit
        yield None, " "
    yield ("ingredient" if mark["sign"] == "@" else "tool"), name
    if mark["note"]:
        yield None, f" ({mark['note']})"


def select_json_ld(text: str, *, name: str) -> Selected:
    """Select from a schema.org Recipe in JSON-LD, alone or inside a saved web page."""
    for document in _documents(text, name):
        if recipe := _find_recipe(document):
            passages = [Passage(text) for text in _instructions(recipe.get("recipeInstructions")) if text]
            listed = recipe.get("recipeIngredient", recipe.get("ingredients", []))
            ingredients = tuple(_plain(item) for item in (listed if isinstance(listed, list) else [listed]))
            language, source = recipe.get("inLanguage", ""), recipe.get("url", "")
            return _selected(
                name,
                _plain(recipe.get("name", "")),
                passages,
                ingredients,
                source=source if isinstance(source, str) else "",
                language=language[:2] if isinstance(language, str) else "",
            )
    raise BadGraph(name, "", 'has no schema.org Recipe; expected an object with "@type": "Recipe"')


class _Scripts(HTMLParser):
    """Collects the JSON-LD scripts of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.scripts: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and (dict(attrs).get("type") or "").lower() == "application/ld+json"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data


def _documents(text: str, name: str) -> Iterator[Any]:
    if not text.lstrip().startswith("<"):
        yield load(text, name)
        return
    page = _Scripts()
    page.feed(text)
    for script in page.scripts:
        try:
            document = json.loads(script)
            refuse_lone_surrogates(document, script, name)
        except (ValueError, RecursionError) as error:
            raise BadGraph(name, "", f"its JSON-LD is not JSON ({error})") from error
        yield document


def _find_recipe(value: Any) -> dict[str, Any] | None:
    if isinstance(value, list):
        return next((recipe for item in value if (recipe := _find_recipe(item))), None)
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
        for item in value:
            yield from _instructions(item)
    elif isinstance(value, dict):
        items = value.get("itemListElement")
        yield from _instructions(items if items is not None else value.get("text", value.get("name", "")))


def _plain(value: Any) -> str:
    text = re.sub(r"<[^>]*>", " ", html.unescape(str(value)))
    return NUMBERED.sub("", " ".join(html.unescape(text).split()))
