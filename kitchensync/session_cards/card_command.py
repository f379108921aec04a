"""The command `kitchensync card`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import GivenRecording

if TYPE_CHECKING:
    from kitchensync.session_cards.session_card import SessionCard

SHOWN_EVENTS = 12


@click.command()
@click.argument("path", type=GivenRecording())
@click.option("--acknowledge", metavar="NAME", help="Say that NAME has read it; kept in the recording.")
@click.option("--again", is_flag=True, help="Make the card of this stage again.")
@answers("card/1")
def card(path: Path, acknowledge: str | None, again: bool) -> Answer[SessionCard]:
    """Show stream by stream whether a recording is usable, and what to repeat before the participant leaves.

    While films are on their way it is the first stage, with an alignment by the camera's small copy; when they are
    here it is the final one, which reports whether they agree. Exit code 1 for FAIL.

    \b
    Example:
      kitchensync card data/take-1 --acknowledge Ada
    """
    from kitchensync.session_cards.session_card import make_card
    from kitchensync.storage.recording_files.kept_session_card import acknowledge as keep

    made = make_card(path, again=again)
    if acknowledge is not None:
        made["acknowledged"] = keep(path, made, acknowledge)
    return Answer(made, _show, failed=made["status"] == "FAIL")


def _show(card: SessionCard) -> None:
    click.echo(f"{card['recording']}: {card['status']} ({card['stage']} card)")
    for line in card["lines"]:
        share = "" if line["coverage"] is None else f"{100 * line['coverage']:.0f} %"
        click.echo(f"{line['status']:5} {line['name']:28} {share:>6} {'; '.join(line['reasons'])}")
    if (alignment := card["alignment"]) is not None:
        verdict = ", ".join(filter(None, (alignment["verdict"], alignment.get("bounds"))))
        click.echo(f"{alignment['status']:5} alignment by {alignment['by']}: {verdict}")
    for store in card["stores"]:
        click.echo(f"      {store.words}")
    for event in card["events"][:SHOWN_EVENTS]:
        click.echo(f"      {event['at_s']:8.1f} s {event['kind']} ({event['by']})")
    for words in card["repeat"]:
        click.echo(f"now: {words}")
    for words in card.get("differs", []):
        click.echo(f"differs from the first card: {words}")
