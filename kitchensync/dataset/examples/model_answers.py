"""Send many prompts to a model server: keep each answer as it arrives, count failures, send nothing twice.

The journal beside a list, `<name>.answers.jsonl`, holds the hash of each request and its answer. A second run skips
answered requests and repeats failed ones.
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
    """A request that would be sent, and its host."""

    host: str
    id: str
    bytes: int
    body: object


@dataclass(frozen=True)
class ModelRequest:
    """A prompt with its id; `schema` is the JSON schema of the answer, if any."""

    id: str
    prompt: str
    schema: JsonSchema | None = None

    def body(self, endpoint: Endpoint) -> bytes:
        """Return the body of the HTTP request."""
        more: dict[str, object] = {}
        if self.schema is not None:
            form = {"name": "answer", "strict": True, "schema": self.schema}
            more["response_format"] = {"type": "json_schema", "json_schema": form}
        return chat_body(endpoint, [{"role": "user", "content": self.prompt}], **more)


class AnswerCounts(TypedDict):
    """Counts of requests that add up: asked = read + refused + failed."""

    asked: int
    read: int
    refused: int
    "Malformed answers."
    failed: int
    failures: dict[str, int]
    "Kind of failure: requests."
    known_before: int
    "Answers from the journal of an earlier run."


@dataclass
class Answers:
    """Answers by id, None if failed; failures by kind; number of answers from the journal; logs of sent data."""

    texts: dict[str, str | None] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    known: int = 0
    logs: set[str] = field(default_factory=set)

    def counts(self, refused: int) -> AnswerCounts:
        """Return the counts, of them `refused` malformed answers."""
        failed = sum(self.failures.values())
        asked = len(self.texts)
        return {
            "asked": asked,
            "read": asked - refused - failed,
            "refused": refused,
            "failed": failed,
            "failures": dict(sorted(self.failures.items())),
            "known_before": self.known,
        }

    def warnings(self, what: str, refused: int) -> list[str]:
        """Return a line for each kind of failure, for refused answers, and for each log of sent data."""
        lines = [f"{number} {what} have no answer: {kind}" for kind, number in sorted(self.failures.items())]
        lines += [f"{refused} {what} have a malformed answer, which is not used"] if refused else []
        return lines + [
            f"{what} were sent to a third party; {log} records the amount" for log in sorted(self.logs)
        ]


def ask_all(
    endpoint: Endpoint,
    requests: Iterable[ModelRequest],
    journal: Path,
    what: str,
    tell: Callable[[int], object],
    environment: Mapping[str, str] = os.environ,
) -> Answers:
    """Send each request that the journal does not answer yet. Raises OSError if the journal cannot be written."""
    place = check_place(journal)
    will_write(place)
    answered, answers = _read_journal(place), Answers()
    with place.open("a", encoding="utf-8") as file:
        for number, request in enumerate(requests):
            tell(number)
            body = request.body(endpoint)
            digest = hashlib.sha256(body).hexdigest()
            if digest in answered:
                answers.texts[request.id], answers.known = answered[digest], answers.known + 1
                continue
            row: dict[str, str] = {"id": request.id, "sha256": digest}
            try:
                text, log = chat(endpoint, body, what, environment)
                answers.logs |= {str(log)} if log else set()
                # Equal requests of one run are sent once, too.
                answers.texts[request.id] = row["text"] = answered[digest] = text
            except NoAnswer as error:
                answers.texts[request.id] = None
                answers.failures[error.kind] += 1
                row |= {"failure": error.kind, "why": str(error)}
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
    return answers


def _read_journal(journal: Path) -> dict[str, str]:
    """Return the answers of a journal by the hash of the request."""
    answered = {}
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # truncated by a power failure: sent again
        if isinstance(row, dict) and isinstance(row.get("text"), str):
            answered[row["sha256"]] = row["text"]
    return answered
