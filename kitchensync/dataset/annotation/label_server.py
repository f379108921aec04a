"""Client of a Label Studio server: its projects and tasks. It never deletes anything."""

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
    """An annotation server cannot be reached, or refuses a request."""


@dataclass(frozen=True)
class Project:
    """A project of a server, with its labels."""

    id: int
    title: str
    labels: frozenset[str]


class Server:
    """A connection to a server with a user's token."""

    def __init__(self, url: str, token_file: Path, transport: httpx.BaseTransport | None = None) -> None:
        """Take the address, and the file that holds only the token. Raises ServerRefused."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ServerRefused(f"{url}: is not an address of a server, such as http://127.0.0.1:8080")
        if parts.scheme == "http" and not is_loopback_address(parts.hostname):
            raise ServerRefused(f"{url}: the token would be sent unencrypted; give its https address")
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
        """Find a project by its title; None if there is none. Raises ServerRefused, BadGraph."""
        matches = [project for project in self._projects() if project.get("title") == title]
        if len(matches) > 1:
            raise ServerRefused(
                f"{self.url}: has {len(matches)} projects called {title!r}; delete or rename all but one"
            )
        if not matches:
            return None
        number = _number(matches[0], self.url)
        project = self._ask("GET", f"/api/projects/{number}")
        config = str(project.get("label_config", "")) if isinstance(project, dict) else ""
        return Project(number, title, parse_labels(config.encode(), f"project {title}"))

    def add_project(self, title: str, config: bytes) -> int:
        """Add a project. Raises ServerRefused."""
        body = {"title": title, "description": "Made by KitchenSync.", "label_config": config.decode()}
        return _number(self._ask("POST", "/api/projects", body), self.url)

    def tasks(self, project: int) -> list[Task]:
        """Return the tasks of recordings in a project, with annotations. Raises ServerRefused, BadGraph."""
        path = f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true"
        tasks = self._ask("GET", path)
        if not isinstance(tasks, list):
            raise ServerRefused(
                f"{self.url}: its export is not a list of tasks; is it Label Studio 1.10 or newer?"
            )
        ours = [
            task for task in tasks if isinstance(task, dict) and "recording_id" in (task.get("data") or ())
        ]
        return tasks_of(ours, f"project {project}")

    def add_task(self, project: int, task: Mapping[str, object]) -> None:
        """Log the task as sent data, then add it with its proposals. Raises ServerRefused, OSError."""
        note_sent(
            urlsplit(self.url).hostname or "", json.dumps([task]).encode(), "a task of an annotation server"
        )
        self._ask("POST", f"/api/projects/{project}/import", [task])

    def _projects(self) -> Iterator[dict[str, Any]]:
        number = 1
        while True:
            page = self._ask("GET", f"/api/projects?page={number}&page_size={PAGE}")
            results = page.get("results") if isinstance(page, dict) else None
            if not isinstance(results, list):
                raise ServerRefused(f"{self.url}: does not list projects; is it a Label Studio server?")
            yield from (project for project in results if isinstance(project, dict))
            if not page.get("next"):
                return
            number += 1

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the answer; renew an expired access token once."""
        if "." in self._token and not self._access:  # a personal access token, not a legacy token
            self._access = self._new_access_token()
        status, answer = self._send(method, path, body)
        if status == httpx.codes.UNAUTHORIZED and self._access:
            self._access = self._new_access_token()
            status, answer = self._send(method, path, body)
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise self._token_refused(status)
        if not httpx.codes.is_success(status):
            why = " ".join(str(answer)[:300].split())
            raise ServerRefused(f"{self.url}: answers {status} to {method} {path}: {why}")
        return answer

    def _new_access_token(self) -> str:
        """Exchange the personal access token for an access token, which is valid for some minutes."""
        self._access = ""
        status, answer = self._send("POST", "/api/token/refresh/", {"refresh": self._token})
        access = answer.get("access") if isinstance(answer, dict) else None
        if not httpx.codes.is_success(status) or not isinstance(access, str):
            raise self._token_refused(status)
        return access

    def _token_refused(self, status: int) -> ServerRefused:
        return ServerRefused(
            f"{self.url}: refuses the token ({status}); make a new one under Account & Settings"
        )

    def _send(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        authorization = f"Bearer {self._access}" if self._access else f"Token {self._token}"
        headers = {} if path == "/api/token/refresh/" else {"Authorization": authorization}
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
                f"{self.url}: does not answer {path} with JSON; is it a Label Studio server?"
            ) from error


def _token(path: Path) -> str:
    try:
        text = path.read_bytes()[: _TOKEN_BYTES + 1].decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ServerRefused(f"{path}: holds no token ({error}); save the token alone in it") from error
    if not text or len(text) > _TOKEN_BYTES or len(text.split()) != 1:
        raise ServerRefused(f"{path}: holds no token; save the token alone in it")
    return text


def _number(project: Any, url: str) -> int:
    number = project.get("id") if isinstance(project, dict) else None
    if type(number) is not int:
        raise ServerRefused(f"{url}: a project has no number; is it a Label Studio server?")
    return number
