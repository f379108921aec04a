"""What reaches the terminal: names and texts of others are shown, never obeyed.

A recording, a file name or a recipe may hold control characters that rewrite the screen or reverse the text on it.
While a command runs, standard output and standard error show them as escapes; only our own styles pass.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import click

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.live import Live
    from rich.progress import Progress
    from rich.segment import Segment

T = TypeVar("T")

_TURNING = "\u202a-\u202e\u2066-\u2069"
_UNSEEN = re.compile(
    r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028\u2029\u2060-\u2064\ufeff\ud800-\udfff"
    rf"{_TURNING}\U000e0000-\U000e007f]"
)
_TURNS = re.compile(f"[{_TURNING}]")


def shown(text: str) -> str:
    """Return a text with escapes for control, direction and zero-width characters and what is no Unicode."""
    return _UNSEEN.sub(_escape, text)


def shown_in_page(value: T) -> T:
    """Return a value of a template with escapes for what turns the direction of a page's text."""
    if isinstance(value, str) and _TURNS.search(value):
        return cast(T, type(value)(_TURNS.sub(_escape, value)))
    return value


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])  # beyond ASCII's first 32 in the form that JSON knows too
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _ShowingStream:
    """A text stream with escapes for what a terminal would obey."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(shown(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def showing_controls() -> Iterator[None]:
    """Let standard output and standard error show control characters while the block runs."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        stream if isinstance(stream, _ShowingStream) else cast(TextIO, _ShowingStream(stream))
        for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _obeying(stream: TextIO) -> TextIO:
    """Return the stream that takes styles of ours."""
    return stream.stream if isinstance(stream, _ShowingStream) else stream


def headline(text: str, colour: str | None = None, *, bold: bool = True) -> None:
    """Print the line that names a result, with a style where stdout is a terminal."""
    out = _obeying(sys.stdout)
    click.echo(click.style(shown(text), fg=colour, bold=bold), file=out, color=out.isatty())


def console(*, stderr: bool = False, **options: Any) -> Console:
    """Make a console of Rich that escapes the texts it prints, not its own styles."""
    from rich.console import Console

    class ShowingConsole(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for one in super().render(renderable, options):
                yield one if one.control else one._replace(text=shown(one.text))

    return ShowingConsole(file=_obeying(sys.stderr if stderr else sys.stdout), **options)


@contextmanager
def live(display: Live | Progress) -> Iterator[None]:
    """Keep a display of Rich up to date while the block runs.

    Rich prints what is written meanwhile above it and reads styles in it: the escapes come before that.
    """
    with display, showing_controls():
        yield
