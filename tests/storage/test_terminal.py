"""Names and texts of others reach a terminal as escapes; styles and bars of our own stay what they are."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kitchensync.cli import main
from kitchensync.shell.progress import Bar
from kitchensync.shell.terminal import console, live, showing_controls, shown, shown_in_page
from kitchensync.storage.manifest import edit_manifest

HOSTILE = "a\x1b[31mb\x1b]8;;http://x.example\x07c\u202ed\u2066e\x00f\u200bg\ufeffh\x9bi"
PLAIN = "Crème brûlée, 麻婆豆腐 \N{COOKING}, \u0627\u0644\n\tend"


def is_obeyed(letter: str) -> bool:
    """Return whether a terminal does something else with a letter than showing it."""
    return letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_is_shown_is_not_obeyed(text: str) -> None:
    told = shown(text.replace("\r\n", "\n"))
    assert not any(map(is_obeyed, told))
    assert not set(told) & set("\u202a\u202e\u2066\u2069\u200b\u200f\u2060\ufeff")
    assert shown(told) == told


def test_words_of_any_language_stay_as_they_are() -> None:
    assert shown(PLAIN) == PLAIN
    assert shown("a\x1b[2J\u202eb\udcffc\r\n\r") == "a\\x1b[2J\\u202eb\\udcffc\r\n\\x0d"


def test_escapes_keep_json_what_it_is() -> None:
    told = shown(json.dumps({"name": HOSTILE + "\x7f"}, ensure_ascii=False))
    assert json.loads(told) == {"name": HOSTILE + "\x7f"}


@pytest.fixture
def hostile(finished: Path, tmp_path: Path) -> Path:
    """A recording from elsewhere with control characters in every name."""
    folder = tmp_path / "lab" / "take\x1b[31m\u202e"
    shutil.copytree(finished, folder)
    with edit_manifest(folder) as manifest:
        manifest |= {"pseudonym": HOSTILE, "recipe": {"name": HOSTILE}, "place": HOSTILE}
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", ["list", "info", "verify"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_commands_show_names_of_others_as_escapes(hostile: Path, command: str, more: tuple[str, ...]) -> None:
    where = hostile.parent if command == "list" else hostile
    done = CliRunner().invoke(main, [command, str(where), *more])
    assert done.stdout
    assert not any(map(is_obeyed, done.output))
    assert "\u202e" not in done.output
    if more:
        assert json.loads(done.stdout)


def test_what_is_refused_is_shown_as_escapes() -> None:
    for words in (["info", f"/absent/{HOSTILE[:20]}"], [f"ver\x1bify{HOSTILE[1:5]}"], ["list", "--\x9bx"]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 2
        assert done.stderr.startswith("kitchensync: ")
        assert not any(map(is_obeyed, done.stderr))


def on_terminal(*words: str, **environment: str) -> str:
    """Run a command on a terminal of its own; return all that it wrote there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kitchensync", *words]
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env={**os.environ, **environment}
    ) as process:
        os.close(theirs)
        told = b"".join(iter(lambda: _read(ours), b""))
        process.wait()
    os.close(ours)
    return told.decode()


def _read(place: int) -> bytes:
    try:
        return os.read(place, 65536)
    except OSError:  # Linux says so at the end
        return b""


@pytest.mark.slow
def test_on_a_terminal_our_own_styles_stay(hostile: Path) -> None:
    told = on_terminal("verify", str(hostile))
    assert "\x1b[32m" in told or "\x1b[33m" in told  # the colour of the verdict
    assert "\x1b[31m" not in told
    assert "\\x1b[31m" in told


@contextmanager
def screen() -> Iterator[io.StringIO]:
    """Standard output and error as a terminal that keeps what it was sent."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out), showing_controls():
        yield out


def test_a_bar_shows_names_as_escapes_and_what_is_printed_beside_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with screen() as out, Bar("synchronizing") as bar:
        bar.show(1, 2, f"[/bold] {HOSTILE[:9]}")
        bar._bar.refresh()
        print(f"beside {HOSTILE}")
    told = out.getvalue()
    for part in ("\x1b[31m", "\x1b]8", "\u202e", "\x00", "\x9b"):
        assert part not in told
    assert "[/bold]" in told
    assert "a\\x1b[31mb\\x1b]8;;http" in told


def test_a_table_of_rich_keeps_its_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    table = Table("the name of it")
    table.add_row(Text("\x1b]0;t\x07", style="green"))
    with screen() as out:
        shown_on = console(stderr=True, width=60, color_system="standard")
        with live(Live(table, console=shown_on, auto_refresh=False)):
            pass
    told = out.getvalue()
    assert "\x1b[32m\\x1b]0;t" in told
    assert "\x1b]0" not in told


@pytest.mark.parametrize(
    ("value", "told"), [("a\u202eb", "a\\u202eb"), (7, 7), (None, None), ("\u200f", "\u200f")]
)
def test_pages_keep_the_direction_of_their_text(value: Any, told: Any) -> None:
    assert shown_in_page(value) == told
    assert isinstance(shown_in_page(Markup("<b>\u2066</b>")), Markup)
