"""Options and helpers that several commands share: input path, seed, model server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording, given_path

if TYPE_CHECKING:
    from kitchensync.dataset.examples.model_answers import Answers, JsonSchema, RequestToSend
    from kitchensync.storage.options.endpoint import Endpoint

FILE = click.argument("file", type=given_path(exists=True))
SEED = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same answer."
)
DRAW_SEED = click.option(
    "--seed", type=click.IntRange(0), default=42, show_default=True, help="The same seed draws the same."
)


class SourcePath(GivenRecording):
    """Path of a recording, a folder of recordings, or a folder in the published form."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises NotARecording."""
        from kitchensync.dataset.source.data_set_folder import is_published

        path = Path(value)
        return path.resolve() if is_published(path) else super().convert(value, param, ctx)


TIMEOUT_S, TRIES = 120.0, 4
SHOW_REQUESTS = click.option(
    "--show-requests",
    is_flag=True,
    help="Write what would be sent, and to which host, as the list; send nothing.",
)


def require_server(purpose: str) -> Endpoint:
    """Return the server configured for a purpose. Raises click.UsageError without one, or if its key is unusable."""
    from kitchensync.storage.options.endpoint import endpoint_of, names_of

    url, model, *_ = names_of(purpose)
    try:
        endpoint = endpoint_of(purpose, os.environ, timeout_s=TIMEOUT_S, tries=TRIES)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    if endpoint is None:
        raise click.UsageError(f"no model to ask: set {url} and {model}")
    return endpoint


def ask_server(
    server: Endpoint, prompts: Mapping[str, str], out: Path, what: str, schema: JsonSchema | None = None
) -> Answers:
    """Send all prompts, by id; answers are stored beside `out` as they arrive. Raises OutputRefused, OSError."""
    from kitchensync.dataset.examples.model_answers import ENDING, ModelRequest, ask_all

    requests = [ModelRequest(name, prompt, schema) for name, prompt in prompts.items()]
    with Bar(unit=what) as bar:
        tell = partial(bar.show, whole=len(requests), words=what)
        return ask_all(server, requests, out.with_name(out.name + ENDING), what, tell)


def list_requests(
    server: Endpoint, prompts: Mapping[str, str], schema: JsonSchema | None = None
) -> list[RequestToSend]:
    """Return the requests that `ask_server` would send; send nothing."""
    from kitchensync.dataset.examples.model_answers import ModelRequest

    bodies = {name: ModelRequest(name, prompt, schema).body(server) for name, prompt in prompts.items()}
    return [
        {"host": server.host, "id": name, "bytes": len(body), "body": json.loads(body)}
        for name, body in bodies.items()
    ]
