"""`kitchensync consent`: what a participant agreed to, entered by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import click

from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.consent import NONE, Scope, give_consent
from kitchensync.storage.options.given_path import GivenRecording


class Scopes(click.ParamType):
    """Scopes separated by commas."""

    name = "SCOPE,.."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Scope, ...]:
        """Return the scopes, each once. Fails for a word that is none."""
        words = [word.strip() for word in str(value).split(",")]
        if unknown := [word for word in words if word not in list(Scope)]:
            self.fail(f"{unknown[0]!r} is no scope; there are {', '.join(Scope)}", param, ctx)
        return tuple(Scope(word) for word in dict.fromkeys(words))


class GivenConsent(TypedDict):
    """The object `consent/1`."""

    recording: str
    consent: str
    "Reference of the form."
    consent_scopes: list[str]


@click.command()
@click.argument("path", type=GivenRecording(usable=True))
@click.option("--reference", required=True, help="The signed form, for example its number in your files.")
@click.option("--scopes", required=True, type=Scopes(), help=f"What was agreed to: {', '.join(Scope)}.")
@click.option("--by", required=True, help="Who enters it.")
@answers("consent/1")
def consent(path: Path, reference: str, scopes: tuple[Scope, ...], by: str) -> Answer[GivenConsent]:
    """Enter what the participant of a recording agreed to.

    \b
    Example:
      kitchensync consent data/take-1 --reference form-12 --scopes annotate,release_raw --by operator-2
    """
    if reference.strip() in ("", NONE):
        why = (
            "this stands for no consent; give the form's number, or no-person-recorded where nobody is in it"
        )
        raise click.BadParameter(why, param_hint="--reference")
    manifest = give_consent(path, reference, scopes, by=by)
    given = manifest["consent_scopes"]
    answer: GivenConsent = {"recording": path.name, "consent": reference, "consent_scopes": given}
    return Answer(answer, lambda _: click.echo(f"{path.name}: {reference} allows {', '.join(given)}"))
