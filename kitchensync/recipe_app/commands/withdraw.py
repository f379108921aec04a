"""`kitchensync withdraw`: destroy recordings whose participant withdrew consent."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

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
    WithdrawnPlaceJson,
    recordings_of,
    require_closed,
    with_made_of,
)
from kitchensync.storage.withdraw.withdrawal import withdraw as withdraw_one


class Withdrawal(TypedDict):
    """The object `withdraw/1`."""

    status: str
    "done, or open while something is left in a place."
    recordings: list[str]
    places: list[WithdrawnPlaceJson]


@click.command()
@click.argument("paths", nargs=-1, type=GivenRecording())
@click.option("--person", help="Pseudonym: all recordings of this participant below --data, and the account.")
@click.option(
    "--data", type=given_path(exists=True, file_okay=False), help="Data folder that is searched for --person."
)
@click.option(
    "--policy",
    type=click.Choice([policy.value for policy in Policy]),
    default=Policy.DESTROY.value,
    show_default=True,
    help="destroy: nothing can be brought back; quarantine: the recording's own folder is put aside for its owner.",
)
@DATABASE
@answers("withdraw/1")
def withdraw(
    paths: tuple[Path, ...], person: str | None, data: Path | None, policy: str, database: str | None
) -> Answer[Withdrawal]:
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
    recordings = [recording for path in paths for recording in recordings_in(path)]
    _lists = [*map(own_list, recordings), *([list_in(data)] if data else [])]  # each list is read once
    if person and data:
        recordings = recordings_of(person, data)
    parents = [recording.resolve().parent for recording in recordings]
    folders = dict.fromkeys([*parents, *([data.resolve()] if data else [])])
    with ExitStack() as stack:
        apps = [stack.enter_context(memory_beside(folder, database)) for folder in folders]
        if person:
            known = {recording.resolve() for recording in recordings}
            of_apps = [recording for app in apps for recording in app.recordings_of(person)]
            recordings += [recording for recording in of_apps if recording not in known]
        recordings, places = with_made_of(recordings)
        if same := [place.place for place in places if place.open == SAME_UUID]:
            raise SameUuid(recordings[0], same)
        for recording in recordings:
            require_closed(recording)  # before anything is logged
        noted = []
        for app in apps:
            names = [recording.name for recording in recordings if recording.resolve().parent == app.data]
            noted.append((app, app.note(names, person or "")))
        places += [place for recording in recordings for place in withdraw_one(recording, Policy(policy))]
        places += [place for app, what in noted for place in app.destroy(what, person or "")]
        for app in apps:
            app.keep_proof(places)
    remaining = [place for place in places if place.open]
    answer: Withdrawal = {
        "status": "open" if remaining else "done",
        "recordings": [recording.name for recording in recordings],
        "places": [place.as_json() for place in places],
    }
    return Answer(answer, _show, trouble=[_trouble(place) for place in remaining])


def _trouble(place: WithdrawnPlace) -> str:
    if place.done == NOT_MADE_HERE:
        return f"left alone: {place.place}: {place.open}"
    return f"not reached yet: {place.place}: {place.open}; run it again then"


def _show(answer: Withdrawal) -> None:
    if not answer["places"]:
        click.echo("no recording of this person")
    for place in answer["places"]:
        click.echo(
            f"{place['place']}: {place['found']} found, {place['done']}"
            + (f"; open: {place['open']}" * bool(place["open"]))
        )
