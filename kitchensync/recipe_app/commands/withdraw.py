"""`kitchensync withdraw`: a participant took the consent back."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from kitchensync.recipe_app.commands.app_options import DATABASE
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.errors import SameUuid
from kitchensync.storage.installation.own_list import list_in, own_list
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.given_path import GivenRecording, given_path
from kitchensync.storage.withdraw.withdrawal import (
    NOT_MADE_HERE,
    SAME_UUID,
    Policy,
    WithdrawnPlace,
    recordings_of,
    require_closed,
    with_made_of,
)
from kitchensync.storage.withdraw.withdrawal import withdraw as withdraw_one


@click.command()
@click.argument("paths", nargs=-1, type=GivenRecording())
@click.option("--person", help="Pseudonym: all recordings of this participant below --data, and the account.")
@click.option(
    "--data", type=given_path(exists=True, file_okay=False), help="Data folder that is searched for --person."
)
@click.option(
    "--policy",
    type=click.Choice([one.value for one in Policy]),
    default=Policy.DESTROY.value,
    show_default=True,
    help="destroy: nothing can be brought back; quarantine: the recording's own folder is put aside for its owner.",
)
@DATABASE
@answers("withdraw/1")
def withdraw(
    paths: tuple[Path, ...], person: str | None, data: Path | None, policy: str, database: str | None
) -> Answer:
    """Destroy recordings and their copies because the participant withdrew consent.

    Copies are those that `move`, `record --nas` and `upload` made, recordings beside it that were made of it (cut,
    replayed, adopted, copied by hand), and the files on the camera's card. The recipe app over the same data folder
    forgets them: touches, voice notes, plans; its backups are rewritten. `recording.json` stays as a tombstone: ids,
    and names, sizes and hashes of what was destroyed; every later command refuses the recording. A store or a camera
    that is unavailable stays open, and is done when the same command runs again.

    \b
    Example:
      kitchensync withdraw data/take-1
      kitchensync withdraw --person P07 --data data
    """
    from kitchensync.recipe_app.commands.at_rest import memory_beside

    if bool(paths) == bool(person) or bool(person) != bool(data):
        raise click.UsageError("give recordings, or --person and --data")
    found = [one for path in paths for one in recordings_in(path)]
    _held = [*map(own_list, found), *([list_in(data)] if data else [])]  # each list is read once
    if person and data:
        found = recordings_of(person, data)
    folders = dict.fromkeys([*(one.resolve().parent for one in found), *([data.resolve()] if data else [])])
    with ExitStack() as stack:
        apps = [stack.enter_context(memory_beside(folder, database)) for folder in folders]
        if person:
            known = {one.resolve() for one in found}
            found += [one for app in apps for one in app.recordings_of(person) if one not in known]
        found, places = with_made_of(found)
        if same := [one.place for one in places if one.open == SAME_UUID]:
            raise SameUuid(found[0], same)
        for one in found:
            require_closed(one)  # before anything is noted
        noted = [
            (app, app.note([one.name for one in found if one.resolve().parent == app.data], person or ""))
            for app in apps
        ]
        places += [place for recording in found for place in withdraw_one(recording, Policy(policy))]
        places += [place for app, what in noted for place in app.destroy(what, person or "")]
        for app in apps:
            app.keep_proof(places)
    left = [one for one in places if one.open]
    said = {
        "status": "open" if left else "done",
        "recordings": [recording.name for recording in found],
        "places": [one.as_json() for one in places],
    }
    return Answer(said, _show, trouble=[_trouble(one) for one in left])


def _trouble(place: WithdrawnPlace) -> str:
    if place.done == NOT_MADE_HERE:
        return f"left alone: {place.place}: {place.open}"
    return f"not reached yet: {place.place}: {place.open}; run it again then"


def _show(said: dict[str, Any]) -> None:
    if not said["places"]:
        click.echo("no recording of this person")
    for one in said["places"]:
        click.echo(
            f"{one['place']}: {one['found']} found, {one['done']}"
            + (f"; open: {one['open']}" * bool(one["open"]))
        )
