"""Safe terminal output: control characters in names and texts are shown as escapes.

A recording, a file name or a recipe may contain control characters that rewrite the screen or reverse its text.
While a command runs, standard output and standard error escape them; only the program's own styles pass.
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
    """Return a text with escapes for control, direction and zero-width characters and lone surrogates."""
    return _UNSEEN.sub(_escape, text)


def shown_in_page(value: T) -> T:
    """Return a template's value with escapes for characters that change the text direction."""
    if isinstance(value, str) and _TURNS.search(value):
        return cast(T, type(value)(_TURNS.sub(_escape, value)))
    return value


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])  # from 0x20 in the form of JSON
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _ShowingStream:
    """A text stream that escapes control characters."""

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
    """Escape control characters on standard output and standard error while the block runs."""
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
    """Return the underlying stream, for our own styles."""
    return stream.stream if isinstance(stream, _ShowingStream) else stream


def headline(text: str, colour: str | None = None, *, bold: bool = True) -> None:
    """Print the headline of a result, styled if stdout is a terminal."""
    out = _obeying(sys.stdout)
    click.echo(click.style(shown(text), fg=colour, bold=bold), file=out, color=out.isatty())


def console(*, stderr: bool = False, **options: Any) -> Console:
    """Make a Rich console that escapes control characters in texts but not its own styles."""
    from rich.console import Console

    class ShowingConsole(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=shown(segment.text))

    return ShowingConsole(file=_obeying(sys.stderr if stderr else sys.stdout), **options)


@contextmanager
def live(display: Live | Progress) -> Iterator[None]:
    """Show a Rich display while the block runs.

    Rich prints other output above the display and interprets styles in it, so the escaping comes first.
    """
    with display, showing_controls():
        yield
