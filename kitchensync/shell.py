"""The one way out of every command: what it cannot do is one line on stderr, with `--json` one object on stdout too.

Exit codes: 1 for a refusal and for trouble of the computer, 2 for wrong usage or a path that is no recording.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from storage.errors import words_of
from storage.shell.lazy_group import LazyGroup
from storage.shell.refusal import Answered

EXPECTED_ERRORS = (
    ("calibration.errors", "CalibrationError"),
    ("capture.errors", "CaptureError"),
    ("recipe_app.errors", "RecipeError"),
    ("sensors.errors", "SensorError"),
    ("storage.errors", "StorageError"),
    ("sync.errors", "SyncError"),
    ("virtual_kitchen.errors", "KitchenError"),
)
"""The base errors of the folders: each is one line for the user, never a traceback."""

SCHEMAS = {
    **{f"graph-{name}": name for name in ("convert", "hints", "orders", "script")},
    "release-captaincook4d": "release",
    "rig-check": "rig",
    **dict.fromkeys(("calibrate-gopro", "calibrate-rig", "calibrate-imu"), "calibrate"),
    "calibrate-check": "calibrate-check-all",
}
"""Commands whose objects are not named after them."""


class Shell(LazyGroup):
    """The group of all commands, which turns what can be foreseen into one line and an exit code."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Run a command and leave with its exit code."""
        run: Callable[..., Any] = super().main
        if not extra.pop("standalone_mode", True):
            return run(args, *more, standalone_mode=False, **extra)
        words = list(sys.argv[1:] if args is None else args)
        try:
            code = run(args, *more, standalone_mode=False, **extra)
        except NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.Abort:
            _leave(words, "stopped by Ctrl-C; what is whole stays, run the same command again to go on", 1)
        except click.UsageError as error:
            _leave(words, f"{error.format_message().rstrip('.')}; {_help(error)}", error.exit_code)
        except click.ClickException as error:
            _leave(words, error.format_message(), error.exit_code, answered=isinstance(error, Answered))
        except Exception as error:
            if (reason := foreseen(error)) is None:
                raise
            _leave(words, reason, getattr(error, "exit_code", 1))
        sys.exit(code if isinstance(code, int) else 0)


def foreseen(error: Exception) -> str | None:
    """Return what is said of an error that can be foreseen, None of a mistake of ours.

    A folder that was not loaded cannot have raised.
    """
    loaded = ((sys.modules[module], name) for module, name in EXPECTED_ERRORS if module in sys.modules)
    if any(isinstance(error, getattr(module, name)) for module, name in loaded):
        return str(error)
    if isinstance(error, OSError):  # of the computer: full or read-only disks, files that go away
        return words_of(error)
    return None


def _help(error: click.UsageError) -> str:
    path = error.ctx.command_path.split()[1:] if error.ctx else []
    return f"see `{' '.join(['kitchensync', *path])} --help`"


def _leave(words: list[str], reason: str, code: int, *, answered: bool = False) -> None:
    reason = " ".join(reason.split())
    if "--json" in words and not answered:
        name = command_name(words)
        schema = f"{SCHEMAS.get(name, name)}/1"
        click.echo(json.dumps({"schema": schema, "status": "refused", "reason": reason}))
    click.echo(f"kitchensync: {reason}", err=True)
    sys.exit(code)


def command_name(words: list[str]) -> str:
    """Return the name of the command in some arguments, `gopro-fetch` for `gopro fetch`."""
    return "-".join(_named(words)) or "kitchensync"


def _named(words: list[str]) -> list[str]:
    group: Any = importlib.import_module("kitchensync.cli").main
    found: list[str] = []
    for word in words:
        if word.startswith("-"):
            continue
        command = group.get_command(click.Context(group), word) if isinstance(group, click.Group) else None
        if command is None:
            break
        found.append(word)
        group = command
    return found
