"""Commands as they are typed, run in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from kitchensync.cli import main


def typed(*words: object) -> Result:
    """Run a command to its end."""
    return CliRunner().invoke(main, [*map(str, words)])


def answer(*words: object, code: int | None = 0) -> Any:
    """Return the object that a command answers with; its exit code is `code`, or any where that is None."""
    done = typed(*words, "--json")
    assert code is None or done.exit_code == code, done.output
    return json.loads(done.stdout)


def code_and_answer(*words: object) -> tuple[int, Any]:
    """Return the exit code of a command, and its object, or all that it printed where that is none."""
    done = typed(*words, "--json")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, json.loads(done.stdout) if done.stdout else done.output
