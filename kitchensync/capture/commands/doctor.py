"""The command `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from kitchensync.capture.doctor.acceptance import examine_acceptance
from kitchensync.capture.doctor.checks import BAD, GOOD, RIG_MB_PER_S, DoctorAnswer, examine_computer
from kitchensync.capture.doctor.devices import examine_devices
from kitchensync.capture.doctor.headset_checks import examine_headset
from kitchensync.capture.rig.rig_file import order_of
from kitchensync.sensors.hololens.catalogue import DEFAULT_SET, headset_stream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.data_folder import data_option
from kitchensync.storage.options.given_path import GivenRecording, given_path


@click.command()
@click.argument("host", required=False)
@click.option(
    "--rig",
    type=given_path(exists=True, dir_okay=False),
    help="Rig file: check this computer and every device in it.",
)
@data_option("Folder of the recordings.", kind=given_path())
@click.option(
    "--minutes",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Planned length of the session in minutes, for which the disk must have room.",
)
@click.option(
    "--link",
    type=click.Choice(["wifi", "wired"]),
    default="wifi",
    show_default=True,
    help="How the headset is connected.",
)
@click.option(
    "--streams", metavar="A,B,...", help="The streams you mean to record; default: the default set."
)
@click.option(
    "--acceptance",
    metavar="RECORDING",
    type=GivenRecording(usable=True),
    help="Check a synchronized acceptance recording of 20 minutes against the promised limits.",
)
@click.option("--accept-version", metavar="A.B.C", help="Take exactly this hl2ss version.")
@click.option("--strict", is_flag=True, help="Give exit code 1 for warnings too.")
@answers("doctor/1")
def doctor(
    host: str | None,
    rig: Path | None,
    data: Path,
    minutes: float,
    link: Literal["wifi", "wired"],
    streams: str | None,
    acceptance: Path | None,
    accept_version: str | None,
    strict: bool,
) -> Answer[DoctorAnswer]:
    """Check this computer before a session; with HOST a headset, with --rig all devices of a rig.

    Exit code 1 when something would spoil the session. With --acceptance it compares a recording of the lab's own
    devices with the promised limits, on one page that contains no names of persons.

    \b
    Example:
      kitchensync doctor 192.168.1.20 --link wifi
      kitchensync doctor --acceptance data/acceptance-1 > acceptance.txt
    """
    if sum(subject is not None for subject in (host, rig, acceptance)) > 1:
        raise click.UsageError("give one of HOST, --rig and --acceptance")
    if acceptance is not None:
        report = examine_acceptance(acceptance)
    elif rig is not None:
        report = examine_devices(order_of(rig), data, minutes, rig.name)
    elif host is None:
        report = examine_computer(data, minutes, RIG_MB_PER_S[link])
    else:
        names = [headset_stream(name).name for name in streams.split(",")] if streams else list(DEFAULT_SET)
        report = examine_headset(host, names, Profile(link=link), accept_version)
    failed = report.status == BAD or (strict and report.status != GOOD)
    return Answer(report.answer(), _show, failed=failed)


def _show(report: DoctorAnswer) -> None:
    for finding in report["findings"]:
        advice = f"  -> {finding.advice}" if finding.advice else ""
        click.echo(f"{finding.status:5} {finding.what:28} {finding.seen}{advice}")
    click.echo(f"{report['subject']}: {report['status']}")
