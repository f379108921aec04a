"""A Label Studio server over HTTP: its projects, and the tasks in them. Nothing is ever deleted there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx

from kitchensync.dataset.annotation.forms.label_config import parse_labels
from kitchensync.dataset.annotation.forms.server_export import MOST_BYTES, Task, tasks_of
from kitchensync.shell.loopback import is_loopback_address
from kitchensync.shell.untrusted_json import BadJson, parse_json
from kitchensync.storage.options.endpoint import note_sent
from kitchensync.task_graphs.errors import RecipeError

TIMEOUT_S = 60
PAGE = 100
_TOKEN_BYTES = 4096


class ServerRefused(RecipeError):
    """An annotation server that cannot be reached, or does not do what it is asked for."""


@dataclass(frozen=True)
class Project:
    """One project of a server, and the labels that it has there."""

    id: int
    title: str
    labels: frozenset[str]


class Server:
    """One server, with the token of the person who works there."""

    def __init__(self, url: str, token_file: Path, transport: httpx.BaseTransport | None = None) -> None:
        """Take the address and the file that holds the token alone. Raises ServerRefused."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ServerRefused(f"{url}: is no address of a server; give one such as http://127.0.0.1:8080")
        if parts.scheme == "http" and not is_loopback_address(parts.hostname):
            why = "the token would go over the network in the clear; give its https address"
            raise ServerRefused(f"{url}: {why}")
        self.url = url.rstrip("/")
        self._token = _token(token_file)
        self._access = ""
        self._client = httpx.Client(
            base_url=self.url, timeout=TIMEOUT_S, trust_env=False, transport=transport, follow_redirects=False
        )

    def __enter__(self) -> Server:
        """Return the server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        self._client.close()

    def project(self, title: str) -> Project | None:
        """Find a project by its title; None where there is none. Raises ServerRefused, BadGraph."""
        found = [one for one in self._projects() if one.get("title") == title]
        if len(found) > 1:
            raise ServerRefused(
                f"{self.url}: has {len(found)} projects called {title!r}; delete or rename all but one"
            )
        if not found:
            return None
        number = _number(found[0], self.url)
        one = self._ask("GET", f"/api/projects/{number}")
        config = str(one.get("label_config", "")) if isinstance(one, dict) else ""
        return Project(number, title, parse_labels(config.encode(), f"project {title}"))

    def add_project(self, title: str, config: bytes) -> int:
        """Make a project. Raises ServerRefused."""
        body = {"title": title, "description": "Made by KitchenSync.", "label_config": config.decode()}
        return _number(self._ask("POST", "/api/projects", body), self.url)

    def tasks(self, project: int) -> list[Task]:
        """Return the tasks of recordings in a project, with annotations. Raises ServerRefused, BadGraph."""
        path = f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true"
        found = self._ask("GET", path)
        if not isinstance(found, list):
            raise ServerRefused(
                f"{self.url}: its export is no list of tasks; is it Label Studio 1.10 or newer?"
            )
        ours = [one for one in found if isinstance(one, dict) and "recording_id" in (one.get("data") or ())]
        return tasks_of(ours, f"project {project}")

    def add_task(self, project: int, task: Mapping[str, object]) -> None:
        """Add a task with its proposals; what leaves this computer is noted before. Raises ServerRefused, OSError."""
        note_sent(
            urlsplit(self.url).hostname or "", json.dumps([task]).encode(), "a task of an annotation server"
        )
        self._ask("POST", f"/api/projects/{project}/import", [task])

    def _projects(self) -> Iterator[dict[str, Any]]:
        number = 1
        while True:
            page = self._ask("GET", f"/api/projects?page={number}&page_size={PAGE}")
            found = page.get("results") if isinstance(page, dict) else None
            if not isinstance(found, list):
                raise ServerRefused(f"{self.url}: does not list projects; is it a Label Studio server?")
            yield from (one for one in found if isinstance(one, dict))
            if not page.get("next"):
                return
            number += 1

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask; an access that has run out is renewed once."""
        if "." in self._token and not self._access:
            self._access = self._renewed()
        status, found = self._send(method, path, body)
        if status == httpx.codes.UNAUTHORIZED and self._access:
            self._access = self._renewed()
            status, found = self._send(method, path, body)
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise ServerRefused(
                f"{self.url}: refuses the token ({status}); make a new one under Account & Settings"
            )
        if not httpx.codes.is_success(status):
            why = " ".join(str(found)[:300].split())
            raise ServerRefused(f"{self.url}: answers {status} to {method} {path}: {why}")
        return found

    def _renewed(self) -> str:
        """Return an access for some minutes: what a personal access token is good for."""
        self._access = ""
        status, found = self._send("POST", "/api/token/refresh/", {"refresh": self._token})
        access = found.get("access") if isinstance(found, dict) else None
        if not httpx.codes.is_success(status) or not isinstance(access, str):
            raise ServerRefused(
                f"{self.url}: refuses the token ({status}); make a new one under Account & Settings"
            )
        return access

    def _send(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        said = f"Bearer {self._access}" if self._access else f"Token {self._token}"
        headers = {} if path == "/api/token/refresh/" else {"Authorization": said}
        try:
            with self._client.stream(method, path, json=body, headers=headers) as answer:
                content = b""
                for piece in answer.iter_bytes():
                    content += piece
                    if len(content) > MOST_BYTES:
                        raise ServerRefused(f"{self.url}: answers more than {MOST_BYTES} bytes to {path}")
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise ServerRefused(
                f"{self.url}: cannot be reached ({why}); run the same command again"
            ) from error
        try:
            return answer.status_code, parse_json(content, most_bytes=MOST_BYTES) if content else None
        except BadJson as error:
            if not answer.is_success:
                return answer.status_code, content[:300].decode(errors="replace")
            raise ServerRefused(
                f"{self.url}: answers no JSON to {path}; is it a Label Studio server?"
            ) from error


def _token(path: Path) -> str:
    try:
        text = path.read_bytes()[: _TOKEN_BYTES + 1].decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ServerRefused(f"{path}: holds no token ({error}); save the token alone in it") from error
    if not text or len(text) > _TOKEN_BYTES or len(text.split()) != 1:
        raise ServerRefused(f"{path}: holds no token; save the token alone in it")
    return text


def _number(one: Any, url: str) -> int:
    number = one.get("id") if isinstance(one, dict) else None
    if type(number) is not int:
        raise ServerRefused(f"{url}: gives a project no number; is it a Label Studio server?")
    return number
