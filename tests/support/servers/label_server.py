"""Annotation servers for tests: one that keeps projects in memory, and how to log in at a real one."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import chromium
from processes import running

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
            return 200, [{**one, "predictions": [1]} for one in self.tasks[number]]  # as a real one
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


EMAIL, PASSWORD = "annotator@example.com", "only-on-loopback-1"
START_S = 240
"""A first start makes a database of some hundred migrations."""


@dataclass
class LabelStudio:
    """A real server that runs: its address, its folder, and a session of its only user."""

    url: str
    folder: Path
    token: str
    session: httpx.Client

    def write(self, path: str, body: Any, method: str = "POST") -> Any:
        """Change something as the page of the server does."""
        headers = {"X-CSRFToken": self.session.cookies["csrftoken"], "Referer": self.url}
        answer = self.session.request(method, path, json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json() if answer.content else None


def label_studio_command() -> str:
    """Return the command of a real server, or skip the test with a reason."""
    command = Path(__file__).resolve().parents[3] / ".venv" / "label-studio" / "bin" / "label-studio"
    if not command.exists():
        pytest.skip("no Label Studio server here; `make label-studio` installs it and runs this test")
    return str(command)


@contextmanager
def label_studio(folder: Path, films: Path) -> Iterator[LabelStudio]:
    """Run a real server with a new database below `folder`; it may serve what lies below `films`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "base").mkdir()
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "base"),
        "DJANGO_DB": "sqlite",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "FEATURE_FLAGS_OFFLINE": "true",
        "LOCAL_FILES_SERVING_ENABLED": "true",
        "LOCAL_FILES_DOCUMENT_ROOT": str(films),
        "HOME": str(folder),
    }
    words = ["start", "--internal-host", "127.0.0.1", "--port", str(port), "--no-browser"]
    who = ["--username", EMAIL, "--password", PASSWORD]
    log = folder / "log"
    with (
        log.open("w") as said,
        running(
            [label_studio_command(), *words, *who],
            env=os.environ | settings,
            stdout=said,
            stderr=subprocess.STDOUT,
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as session,
    ):
        _wait(session, process, log)
        yield LabelStudio(str(session.base_url), folder / "base", _sign_in(session), session)


def _wait(session: httpx.Client, process: subprocess.Popen[str], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-2000:]
        with suppress(httpx.HTTPError):
            if session.get("/health").is_success:
                return
        time.sleep(0.5)
    raise AssertionError(f"no server after {START_S} s: {log.read_text()[-2000:]}")


def _sign_in(session: httpx.Client) -> str:
    """Sign in as the page does, and make the one personal access token of the user."""
    session.get("/user/login/")
    form = {"email": EMAIL, "password": PASSWORD, "csrfmiddlewaretoken": session.cookies["csrftoken"]}
    session.post("/user/login/", data=form, headers={"Referer": f"{session.base_url}/user/login/"})
    headers = {"X-CSRFToken": session.cookies["csrftoken"], "Referer": str(session.base_url)}
    answer = session.post("/api/token/", headers=headers)
    assert answer.status_code == 201, answer.text[:300]
    return str(answer.json()["token"])


VIDEO = "window.Htx.annotationStore.selected.names.get('video')"
"""The film, in the page of a real server."""


@contextmanager
def at_the_task(server: LabelStudio, project: int, task: int) -> Iterator[Any]:
    """The page of a real server with the film of a task loaded; its user is signed in."""
    with chromium(home=server.folder) as browser:
        page = browser.new_page(viewport={"width": 1920, "height": 1440})
        page.goto(f"{server.url}/user/login/")
        page.fill("input[name=email]", EMAIL)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_url(lambda url: "login" not in url)
        page.goto(f"{server.url}/projects/{project}/data?task={task}")
        page.wait_for_function(f"window.Htx?.annotationStore?.selected && {VIDEO}?.length > 1")
        yield page


def film_seconds(server: LabelStudio, project: int, task: int, frames: list[int]) -> list[float]:
    """Return the seconds of the film that the page of a real server shows for frames, as it counts them."""
    found = []
    with at_the_task(server, project, task) as page:
        for frame in frames:
            page.evaluate(f"{VIDEO}.setFrame({frame})")
            page.wait_for_function("!document.querySelector('video').seeking")
            found.append(float(page.evaluate("document.querySelector('video').currentTime")))
    return found
