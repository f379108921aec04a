"""Many questions to a model server: each answer is kept as it comes, each failure is counted, nothing is asked twice.

The journal beside a list, `<name>.answers.jsonl`, holds what was sent (as a hash) and what came back; run again, what
is there already is not asked again, failures are.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from kitchensync.storage.copies.derived import will_write
from kitchensync.storage.options.endpoint import Endpoint, NoAnswer, chat, chat_body
from kitchensync.storage.options.outputs import check_place

ENDING = ".answers.jsonl"
JsonSchema = Mapping[str, object]


class RequestToSend(TypedDict):
    """What would be sent, and to whom."""

    host: str
    id: str
    bytes: int
    body: object


@dataclass(frozen=True)
class ModelRequest:
    """A question with its id; `schema` is the form that the answer should have, where it has one."""

    id: str
    prompt: str
    schema: JsonSchema | None = None

    def body(self, endpoint: Endpoint) -> bytes:
        """Return what is sent."""
        more: dict[str, object] = {}
        if self.schema is not None:
            form = {"name": "answer", "strict": True, "schema": self.schema}
            more["response_format"] = {"type": "json_schema", "json_schema": form}
        return chat_body(endpoint, [{"role": "user", "content": self.prompt}], **more)


@dataclass
class Answers:
    """What came back by id, None where nothing did; failures by kind; how many answers were there before."""

    texts: dict[str, str | None] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    known: int = 0
    logs: set[str] = field(default_factory=set)

    def counts(self, refused: int) -> dict[str, object]:
        """Return counts that add up: asked = read + refused + failed."""
        failed = sum(self.failures.values())
        asked = len(self.texts)
        counts = {"asked": asked, "read": asked - refused - failed, "refused": refused, "failed": failed}
        return {**counts, "failures": dict(sorted(self.failures.items())), "known_before": self.known}

    def warnings(self, what: str, refused: int) -> list[str]:
        """Report what failed, what could not be read, and where it is noted what left this computer."""
        lines = [f"{number} {what} have no answer: {kind}" for kind, number in sorted(self.failures.items())]
        lines += (
            [f"{refused} {what} have an answer that is not in the form and is not used"] if refused else []
        )
        return lines + [
            f"{what} were sent to others; how much is noted in {log}" for log in sorted(self.logs)
        ]


def ask_all(
    endpoint: Endpoint,
    requests: Iterable[ModelRequest],
    journal: Path,
    what: str,
    tell: Callable[[int], object],
    environment: Mapping[str, str] = os.environ,
) -> Answers:
    """Ask each question that the journal does not answer yet. Raises OSError where the journal cannot be written."""
    place = check_place(journal)
    will_write(place)
    known, found = _known(place), Answers()
    with place.open("a", encoding="utf-8") as file:
        for number, request in enumerate(requests):
            tell(number)
            body = request.body(endpoint)
            digest = hashlib.sha256(body).hexdigest()
            if digest in known:
                found.texts[request.id], found.known = known[digest], found.known + 1
                continue
            said: dict[str, str] = {"id": request.id, "sha256": digest}
            try:
                text, log = chat(endpoint, body, what, environment)
                found.logs |= {str(log)} if log else set()
                found.texts[request.id] = said["text"] = known[digest] = text  # the same twice is asked once
            except NoAnswer as error:
                found.texts[request.id] = None
                found.failures[error.kind] += 1
                said |= {"failure": error.kind, "why": str(error)}
            file.write(json.dumps(said) + "\n")
            file.flush()
            os.fsync(file.fileno())
    return found


def _known(journal: Path) -> dict[str, str]:
    """Return the answers of a journal by what was sent; a last line that was not written whole is none."""
    found = {}
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        try:
            said = json.loads(line)
        except ValueError:
            continue  # broken off by a power cut: asked again
        if isinstance(said, dict) and isinstance(said.get("text"), str):
            found[said["sha256"]] = said["text"]
    return found
