"""Ask an OpenAI-compatible server for further hints; whatever goes wrong, the rules alone answer.

Off unless it is named in the environment. What is sent: the step, its neighbours in the graph, the categories; never
anything about participants. What comes back passes the same gate as the rules' own hints.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from recipe_app.graphs.mistakes.hint_rules import TEXT_RULES
from recipe_app.graphs.mistakes.hints import Hint, accepted
from recipe_app.graphs.model import Graph, Step
from storage.shell.third_parties import note_sent, read_key

URL = "KITCHENSYNC_HINTS_URL"
MODEL = "KITCHENSYNC_HINTS_MODEL"
KEY_ENV, KEY_FILE = "KITCHENSYNC_HINTS_KEY_ENV", "KITCHENSYNC_HINTS_KEY_FILE"

TIMEOUT_S = 20.0
MAX_ANSWER_BYTES = 200_000
MOST_HINTS = 10

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


@dataclass(frozen=True, slots=True)
class HintServer:
    """Where to ask; `key` never appears in a message."""

    base_url: str
    model: str
    key: str | None = None


def server_of(environment: Mapping[str, str]) -> HintServer | None:
    """Read the server from the environment, None when it is not named there. Raises OSError, ValueError."""
    url, model = environment.get(URL, "").rstrip("/"), environment.get(MODEL, "")
    if not url or not model:
        return None
    if KEY_FILE in environment:
        return HintServer(url, model, read_key(Path(environment[KEY_FILE])))
    return HintServer(url, model, environment.get(environment.get(KEY_ENV, ""), None))


def model_hints(
    graph: Graph, step: Step, environment: Mapping[str, str] = os.environ
) -> tuple[list[Hint], str]:
    """Return the model's accepted hints of a step and a note: why there are none, or who was told the recipe."""
    try:
        server = server_of(environment)
    except (OSError, ValueError) as error:
        return [], f"no model asked: {error}; the rules answered alone"
    if server is None:
        return [], f"no model asked: set {URL} and {MODEL}; the rules answered alone"
    prompt = _prompt(graph, step)
    origin = f"{server.model} {hashlib.sha256(prompt.encode()).hexdigest()[:12]}"
    body = _body(server, prompt)
    try:
        host = httpx.URL(server.base_url).host
        log = note_sent(host, body, "recipe text", environment)
        answer = _ask(server, body)
        found = [_hint(step, one, origin) for one in answer["hints"][:MOST_HINTS]]
    except OSError as error:
        return [], f"no model asked, it could not be noted ({error.strerror}); the rules answered alone"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return [], f"the model did not answer ({type(error).__name__}); the rules answered alone"
    except (ValueError, KeyError, TypeError, IndexError) as error:
        return [], f"the model's answer could not be read ({type(error).__name__}); the rules answered alone"
    return accepted(step, found), f"recipe text was sent to {host}; how much is noted in {log}" if log else ""


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


def _body(server: HintServer, prompt: str) -> bytes:
    body = {
        "model": server.model,
        "temperature": 0,
        "messages": [{"role": "user", "content": prompt}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "hints", "strict": True, "schema": _SCHEMA},
        },
    }
    return json.dumps(body).encode()


def _ask(server: HintServer, body: bytes) -> dict[str, Any]:
    headers = {"content-type": "application/json"}
    headers |= {"Authorization": f"Bearer {server.key}"} if server.key else {}
    with (
        httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client,
        client.stream(
            "POST", f"{server.base_url}/chat/completions", content=body, headers=headers
        ) as response,
    ):
        response.raise_for_status()
        content = b""
        for part in response.iter_bytes():
            content += part
            if len(content) > MAX_ANSWER_BYTES:
                raise ValueError("too long")
    answer: dict[str, Any] = json.loads(json.loads(content)["choices"][0]["message"]["content"])
    return answer


def _hint(step: Step, one: dict[str, Any], origin: str) -> Hint:
    category, subtype, expected, actual, text = (str(one[name]).strip() for name in _FIELDS)
    if category not in _CATEGORIES:
        raise ValueError("unknown category")
    wording = f"{actual} instead of {expected}" if expected else actual
    return Hint(step.node, category, subtype, expected, actual, text, wording, origin)
