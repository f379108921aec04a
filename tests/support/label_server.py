"""Annotation servers for tests: one that keeps projects in memory, and how to log in at a real one."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "0123456789abcdef0123456789abcdef01234567"


class KeptProjects:
    """What a server keeps; a test changes it as people would. `lose_after` tasks it breaks off an import."""

    def __init__(self) -> None:
        self.projects: dict[int, dict[str, Any]] = {}
        self.tasks: dict[int, list[dict[str, Any]]] = {}
        self.lose_after: int | None = None
        self.url = ""
        self.asked: list[str] = []

    def task(self, recording: str) -> dict[str, Any]:
        """Find the task of a recording."""
        return next(t for many in self.tasks.values() for t in many if t["data"]["recording_id"] == recording)

    def mark(self, recording: str, one: dict[str, Any]) -> None:
        """Add what a person marked."""
        self.task(recording)["annotations"].append(one)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Do what is asked for."""
        self.asked.append(f"{method} {path}")
        if path.startswith("/api/projects?"):
            return 200, {"results": list(self.projects.values()), "next": None}
        if (method, path) == ("POST", "/api/projects"):
            number = len(self.projects) + 1
            self.projects[number] = {"id": number, **body}
            self.tasks[number] = []
            return 201, self.projects[number]
        found = re.match(r"/api/projects/(\d+)(/\w+)?", path)
        assert found is not None
        number, what = int(found[1]), found[2]
        if what == "/export":
            return 200, self.tasks[number]
        if what == "/import":
            return self._import(number, body)
        return 200, self.projects[number]

    def _import(self, number: int, body: list[dict[str, Any]]) -> tuple[int, Any]:
        if self.lose_after == sum(map(len, self.tasks.values())):
            raise ConnectionResetError
        for one in body:
            place = 100 + sum(map(len, self.tasks.values()))
            self.tasks[number].append({"id": place, "annotations": [], **one})
        return 201, {"task_count": len(body)}


@contextmanager
def kept_projects() -> Iterator[KeptProjects]:
    """Serve projects on a free loopback port."""
    kept = KeptProjects()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
            if self.headers.get("Authorization") != f"Token {TOKEN}":
                status, said = 401, {"detail": "Invalid token."}
            else:
                try:
                    status, said = kept.answer(self.command, self.path, body)
                except ConnectionResetError:
                    self.close_connection = True
                    return
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
