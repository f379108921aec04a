"""Our own format, `graph/1`: a graph with all its facts as one JSON object.

The `label` of a node is authoritative; `action` and `text` are copies for readers and must agree with it. `hash` is
the content hash, which reveals a file that was changed by hand.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from kitchensync.task_graphs.formats.strict_json import NODE_ID, Reader, dump, load
from kitchensync.task_graphs.model import Graph, Link, RecipeVersion, Span, Step, Wording

SCHEMA = "graph/1"

SPAN_KINDS = ("amount", "unit", "tool", "ingredient", "duration", "temperature")
EDGE_KINDS = ("", "physical", "quality", "convention")

_KEYS = {"schema", "recipe", "language", "nodes", "edges", "suggested", "languages", "extra", "hash"}
_NODE_KEYS = {"id", "label", "action", "text", "spans", "est_s", "passive", "hazards", "extra"}
_EDGE_KEYS = {"from", "to", "kind", "why", "origin", "extra"}


def format_graph_json(graph: Graph) -> str:
    """Write a graph as `graph/1`, with an indent of two spaces and a newline at the end."""
    document: dict[str, Any] = {"schema": SCHEMA}
    if graph.recipe != RecipeVersion():
        document["recipe"] = {key: value for key, value in asdict(graph.recipe).items() if value}
    if graph.language:
        document["language"] = graph.language
    document["nodes"] = [_node(step) for step in graph.nodes]
    links = {link.edge: link for link in graph.links}
    document["edges"] = [_edge(links.get(edge, Link(edge))) for edge in graph.edges]
    if graph.suggested:
        document["suggested"] = [_edge(link) for link in graph.suggested]
    if graph.wordings:
        document["languages"] = {
            wording.language: ({"title": wording.title} if wording.title else {})
            | {str(node): label for node, label in wording.labels}
            for wording in graph.wordings
        }
    if graph.extra:
        document["extra"] = json.loads(graph.extra)
    document["hash"] = graph.content_hash
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _node(step: Step) -> dict[str, Any]:
    node: dict[str, Any] = {"id": step.node, "label": step.label}
    if not step.is_terminal:
        node |= {"action": step.action, "text": step.text}
    if step.spans:
        node["spans"] = [{**asdict(span), "text": step.label[span.start : span.end]} for span in step.spans]
    facts = {"est_s": step.est_s, "passive": step.passive, "hazards": list(step.hazards)}
    node |= {key: value for key, value in facts.items() if value}
    if step.extra:
        node["extra"] = json.loads(step.extra)
    return node


def _edge(link: Link) -> dict[str, Any]:
    edge: dict[str, Any] = {"from": link.edge[0], "to": link.edge[1]}
    edge |= {key: value for key in ("kind", "why", "origin") if (value := getattr(link, key))}
    if link.extra:
        edge["extra"] = json.loads(link.extra)
    return edge


def parse_graph_json(text: str, *, name: str) -> Graph:
    """Parse a `graph/1` document; `name` is the file name for messages. Raises BadGraph."""
    read = Reader(name)
    document = read.object(load(text, name), "")
    if document.get("schema") != SCHEMA:
        raise read.fail("schema", f"not {SCHEMA!r}")
    read.known_keys(document, _KEYS, "")
    nodes = _nodes(read, document.get("nodes"))
    ids = {step.node for step in nodes}
    links = _links(read, document.get("edges"), ids, "edges")
    suggested = _links(read, document.get("suggested", []), ids, "suggested")
    if both := {link.edge for link in links} & {link.edge for link in suggested}:
        raise read.fail(f"suggested {list(min(both))}", "is an edge already; remove one of the two")
    graph = Graph(
        name,
        nodes,
        tuple(link.edge for link in links),
        links=tuple(link for link in links if link != Link(link.edge)),
        suggested=tuple(suggested),
        recipe=_recipe(read, document.get("recipe", {})),
        language=read.text(document.get("language", ""), "language"),
        wordings=_wordings(read, document.get("languages", {}), nodes),
        extra=_extra(document),
    )
    if document.get("hash", graph.content_hash) != graph.content_hash:
        raise read.fail(
            "hash", "does not match the content: the file was changed by hand; remove the line to accept it"
        )
    return graph


def _nodes(read: Reader, values: Any) -> tuple[Step, ...]:
    values = read.array(values, "nodes")
    read.number_of_steps(len(values), "nodes")
    nodes: dict[int, Step] = {}
    for number, value in enumerate(values):
        step = _step(read, read.object(value, f"nodes[{number}]"), f"nodes[{number}]")
        if step.node in nodes:
            raise read.fail(f"nodes[{number}]", f"a second step {step.node}; give every step its own id")
        nodes[step.node] = step
    read.one_start_and_end((f"nodes: {step.node}", step.label) for step in nodes.values())
    return tuple(nodes.values())


def _step(read: Reader, value: dict[str, Any], place: str) -> Step:
    read.known_keys(value, _NODE_KEYS, place)
    label = read.label(value.get("label"), place)
    hazards = [
        read.text(hazard, f"{place}: hazards") for hazard in read.array(value.get("hazards", []), place)
    ]
    spans = read.array(value.get("spans", []), f"{place}: spans")
    step = Step(
        read.whole(value.get("id"), f"{place}: id"),
        label,
        tuple(_span(read, span, label, place) for span in spans),
        read.whole(value.get("est_s", 0), f"{place}: est_s"),
        value.get("passive", False) is True,
        tuple(hazards),
        _extra(value),
    )
    for key in ("action", "text"):
        if key in value and value[key] != getattr(step, key):
            raise read.fail(
                f"{place}: {key}", f"is not that of the label, {getattr(step, key)!r}; change both"
            )
    return step


def _span(read: Reader, value: Any, label: str, place: str) -> Span:
    value = read.object(value, f"{place}: spans")
    kind, start, end = value.get("kind"), value.get("start"), value.get("end")
    if kind not in SPAN_KINDS:
        raise read.fail(f"{place}: spans", f"unknown kind {kind!r}; known are {', '.join(SPAN_KINDS)}")
    if not (type(start) is int and type(end) is int and 0 <= start < end <= len(label)):
        raise read.fail(f"{place}: spans", f"[{start}, {end}) is not inside the label")
    if value.get("text", label[start:end]) != label[start:end]:
        raise read.fail(f"{place}: spans", f"{value['text']!r} is not the text at [{start}, {end})")
    return Span(kind, start, end)


def _links(read: Reader, values: Any, ids: set[int], part: str) -> list[Link]:
    links: dict[tuple[int, int], Link] = {}
    for number, value in enumerate(read.array(values, part)):
        place = f"{part}[{number}]"
        value = read.object(value, place)
        read.known_keys(value, _EDGE_KEYS, place)
        edge = (read.whole(value.get("from"), f"{place}: from"), read.whole(value.get("to"), f"{place}: to"))
        for node in edge:
            if node not in ids:
                raise read.fail(place, f"there is no step {node}; correct the id or add the step")
        if edge in links:
            raise read.fail(place, f"{list(edge)} appears already in {part}; remove one")
        kind = value.get("kind", "")
        if kind not in EDGE_KINDS:
            raise read.fail(place, f"unknown kind {kind!r}; known are {', '.join(EDGE_KINDS[1:])}")
        why, origin = (read.text(value.get(key, ""), f"{place}: {key}") for key in ("why", "origin"))
        links[edge] = Link(edge, kind, why, origin, _extra(value))
    return list(links.values())


def _recipe(read: Reader, value: Any) -> RecipeVersion:
    value = read.object(value, "recipe")
    read.known_keys(value, set(asdict(RecipeVersion())), "recipe")
    return replace(RecipeVersion(), **{key: read.text(text, f"recipe: {key}") for key, text in value.items()})


def _wordings(read: Reader, value: Any, nodes: tuple[Step, ...]) -> tuple[Wording, ...]:
    steps = {step.node for step in nodes if not step.is_terminal}
    wordings = []
    for language, labels in read.object(value, "languages").items():
        labels = dict(read.object(labels, f"languages: {language}"))
        title = read.text(labels.pop("title", ""), f"languages: {language}: title")
        if absent := sorted(steps - {int(key) for key in labels if NODE_ID.fullmatch(key)}):
            raise read.fail(
                f"languages: {language}", f"has no text for step {absent[0]}; a language needs every step"
            )
        if unknown := sorted(set(labels) - set(map(str, steps))):
            raise read.fail(f"languages: {language}", f"there is no step {unknown[0]}")
        texts = tuple(
            (int(key), read.label(text, f"languages: {language}: {key}")) for key, text in labels.items()
        )
        wordings.append(Wording(language, texts, title))
    return tuple(wordings)


def _extra(value: dict[str, Any]) -> str:
    return dump(value["extra"]) if "extra" in value else ""
