"""Request further hints from an OpenAI-compatible server; on any failure only the rules answer.

Off unless the environment names a server. It sends the step, its neighbours in the graph and the categories, nothing
about participants. Its hints pass the same check as those of the rules.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from kitchensync.shell.untrusted_json import BadJson, parse_json
from kitchensync.storage.options import endpoint
from kitchensync.task_graphs.mistakes.hint_rules import TEXT_RULES
from kitchensync.task_graphs.mistakes.hints import Hint, accepted, texts_after
from kitchensync.task_graphs.model import Graph, Step

URL, MODEL, KEY_FILE, KEY_ENV = endpoint.names_of("hints")
MOST_HINTS = 10  # the schema sets no limit to their number

_CATEGORIES = [category for category, _ in TEXT_RULES]
_FIELDS = ("category", "subtype", "expected", "actual", "text")
_SCHEMA = {
    "type": "object",
    "properties": {
        "hints": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "category": {"type": "string", "enum": _CATEGORIES},
                    **{name: {"type": "string"} for name in _FIELDS[1:]},
                },
                "required": list(_FIELDS),
                "additionalProperties": False,
            },
        }
    },
    "required": ["hints"],
    "additionalProperties": False,
}


def model_hints(
    graph: Graph, step: Step, environment: Mapping[str, str] = os.environ
) -> tuple[list[Hint], str]:
    """Return the model's accepted hints for a step, and a note: why there are none, or which host got the recipe."""
    alone = "the hints are from rules only"
    try:
        server = endpoint.endpoint_of("hints", environment)
    except (OSError, ValueError) as error:
        return [], f"no model used: {error}; {alone}"
    if server is None:
        return [], f"no model used: set {URL} and {MODEL}; {alone}"
    # Besides the key, `body` is all that leaves this computer for one step.
    schema = {"type": "json_schema", "json_schema": {"name": "hints", "strict": True, "schema": _SCHEMA}}
    prompt = _prompt(graph, step)
    body = endpoint.chat_body(server, [{"role": "user", "content": prompt}], response_format=schema)
    origin = f"{server.model} {hashlib.sha256(prompt.encode()).hexdigest()[:12]}"
    try:
        text, log = endpoint.chat(server, body, "recipe text", environment)
        answer = parse_json(text.encode(), most_bytes=endpoint.MAX_ANSWER_BYTES)
        hints = [_hint(step, raw, origin) for raw in answer["hints"][:MOST_HINTS]]
    except endpoint.NoAnswer as error:
        reason = f"the model did not answer ({error.kind}): "
        return [], f"{'no model used, ' if error.kind == 'not_noted' else reason}{error}; {alone}"
    except (BadJson, ValueError, KeyError, TypeError, IndexError) as error:
        return [], f"the model's answer could not be read ({type(error).__name__}); {alone}"
    sent = f"recipe text was sent to {server.host}; how much is noted in {log}" if log else ""
    return accepted(step, hints, texts_after(graph, step.node)), sent


def _prompt(graph: Graph, step: Step) -> str:
    before = [graph.numbered.by_node[u].text for u, v in graph.inner_edges if v == step.node]
    after = [graph.numbered.by_node[v].text for u, v in graph.inner_edges if u == step.node]
    return "\n".join(
        [
            "A cooking study needs realistic, harmless mistakes. Change one step so that it has exactly one mistake.",
            f"Step: {step.text}",
            f"Steps before it: {'; '.join(before) or 'none'}",
            f"Steps after it: {'; '.join(after) or 'none'}",
            f"Categories: {', '.join(_CATEGORIES)}.",
            "For each fitting category give the changed step as `text`, what was `expected`, what is `actual`.",
            "Nobody may be hurt: no raw meat, no bare hands on heat, no blades towards the body, no new allergens.",
        ]
    )


def _hint(step: Step, raw: dict[str, Any], origin: str) -> Hint:
    category, subtype, expected, actual, text = (str(raw[name]).strip() for name in _FIELDS)
    if category not in _CATEGORIES:
        raise ValueError("unknown category")
    wording = f"{actual} instead of {expected}" if expected else actual
    return Hint(step.node, category, subtype, expected, actual, text, wording, origin)
