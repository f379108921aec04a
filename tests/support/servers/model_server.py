"""A server of models on loopback, OpenAI-compatible as far as it is asked: what it answers, a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kitchensync.storage.options.endpoint import names_of

Say = Callable[[Any], tuple[int, bytes]]


def message(text: str) -> bytes:
    """Return an answer whose message is this text."""
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


class ModelServer:
    """Answers what `say` makes of a request's body (JSON where it is that, else bytes); `asked` keeps all requests.

    `lacking` bytes fewer are sent than announced, then the connection ends; `headers` are added to every answer;
    `after_s` passes before each answer, `drop_s` after each of its bytes.
    """

    def __init__(self, say: Say, purpose: str) -> None:
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.headers: dict[str, str] = {}
        self.lacking, self.after_s, self.drop_s = 0, 0.0, 0.0
        self._purpose = purpose
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                is_json = self.headers["Content-Type"] == "application/json"
                body = json.loads(content) if is_json else content
                outer.asked.append((self.path, dict(self.headers), body))
                status, content = say(body)
                time.sleep(outer.after_s)
                self.send_response(status)
                for name, value in (outer.headers | {"Content-Length": str(len(content))}).items():
                    self.send_header(name, value)
                self.end_headers()
                size = 1 if outer.drop_s else len(content) or 1
                for start in range(0, len(content) - outer.lacking, size):
                    with suppress(ConnectionError):  # nobody listens any more
                        self.wfile.write(content[: len(content) - outer.lacking][start : start + size])
                    time.sleep(outer.drop_s)

            def log_message(self, format: str, *arguments: object) -> None:
                """Stay silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def environment(self) -> dict[str, str]:
        """What names this server."""
        url, model, *_ = names_of(self._purpose)
        return {url: f"http://127.0.0.1:{self.server.server_port}/v1/", model: "kitchen-1"}

    def close(self) -> None:
        """End it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextmanager
def model_servers(
    purpose: str = "", named: pytest.MonkeyPatch | None = None
) -> Iterator[Callable[..., ModelServer]]:
    """Yield who starts servers of a purpose, which the environment names with `named`; end them."""
    with ExitStack() as opened:

        def play(say: Say, asked_for: str = purpose) -> ModelServer:
            made = ModelServer(say, asked_for)
            opened.callback(made.close)
            if named is not None:
                for name, value in made.environment.items():
                    named.setenv(name, value)
            return made

        yield play
