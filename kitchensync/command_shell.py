"""The one way out of every command: what it cannot do is one line on stderr, with `--json` one object on stdout too.

Exit codes: 1 for a refusal and for trouble of the computer, 2 for wrong usage or a path that is no recording.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import click
from click.exceptions import NoArgsIsHelpError

from kitchensync.shell.answer import SCHEMA, refuse, say
from kitchensync.shell.extras import what_to_install
from kitchensync.shell.lazy_group import LazyGroup
from kitchensync.shell.terminal import showing_controls
from kitchensync.storage.copies.derived import noting
from kitchensync.storage.errors import words_of

STOPPED = "stopped by Ctrl-C; what is whole stays, run the same command again to go on"
PRIVATE = 0o077
"""The umask of every command and of what it starts: people are in these files, only their owner may read them."""


class Shell(LazyGroup):
    """The group of all commands, which turns what can be foreseen into one line and an exit code."""

    @showing_controls()
    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Run a command and leave with its exit code."""
        run: Callable[..., Any] = super().main
        if not extra.pop("standalone_mode", True):
            return run(args, *more, standalone_mode=False, **extra)
        words = list(sys.argv[1:] if args is None else args)
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(
                signal.SIGCHLD, signal.SIG_DFL
            )  # as left by who started us: no child's end would be known
        try:
            with _private_files(), noting(f"kitchensync {' '.join(words[:2])}", say):
                code = run(args, *more, standalone_mode=False, **extra)
        except NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            _leave(words, STOPPED, 1)
        except click.UsageError as error:
            _leave(words, f"{error.format_message().rstrip('.')}; {_help(error)}", error.exit_code)
        except click.ClickException as error:
            _leave(words, error.format_message(), error.exit_code)
        except Exception as error:
            if _was_stopped(error):
                _leave(words, STOPPED, 1)
            if (reason := foreseen(error) or self._not_installed(error, words)) is None:
                raise
            _leave(words, reason, getattr(error, "exit_code", 1))
        sys.exit(code if isinstance(code, int) else 0)

    def _not_installed(self, error: Exception, words: list[str]) -> str | None:
        """Return what to install where a package of an extra is missing, None for other errors."""
        if not isinstance(error, ModuleNotFoundError):
            return None
        command = next((word for word in words if word in self.table), "")
        return what_to_install(error.name or "", self.table.get(command, ("", ""))[0].partition(".")[0])


@contextlib.contextmanager
def _private_files() -> Iterator[None]:
    before = os.umask(PRIVATE)
    try:
        yield
    finally:
        os.umask(before)


def _was_stopped(error: BaseException | None) -> bool:
    """Return whether Ctrl-C is behind an error: pydantic, and Python while a class is made, raise their own of it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or "KeyboardInterrupt" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def foreseen(error: Exception) -> str | None:
    """Return the message of an expected error, None for a bug.

    Expected are errors with an exit code, as the base error of each folder has one.
    """
    if hasattr(error, "exit_code"):
        return str(error)
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return "a name here is not UTF-8, which this command cannot use; rename that file or folder"
    if isinstance(error, OSError):  # of the computer: full or read-only disks, files that go away
        return words_of(error)
    return None


def _help(error: click.UsageError) -> str:
    path = error.ctx.command_path.split()[1:] if error.ctx else []
    return f"see `{' '.join(['kitchensync', *path])} --help`"


def _leave(words: list[str], reason: str, code: int) -> NoReturn:
    refuse(reason, schema_of(words) if "--json" in words else None)
    sys.exit(code)


def schema_of(words: list[str]) -> str:
    """Return what the object of the command in some arguments is called; `gopro/1` where a group was meant."""
    found: Any = importlib.import_module("kitchensync.cli").main
    names: list[str] = []
    for word in words:
        if isinstance(found, click.Group) and word in found.list_commands(click.Context(found)):
            names.append(word)
            # What Ctrl-C stopped while it was imported may not come again.
            with contextlib.suppress(Exception):
                found = found.get_command(click.Context(found), word)
        elif not word.startswith("-"):
            break
    return getattr(found.callback, SCHEMA, f"{'-'.join(names) or 'kitchensync'}/1")
