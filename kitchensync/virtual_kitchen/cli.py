"""The command `simulate`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click


def _list_faults(context: click.Context, _parameter: click.Parameter, is_set: bool) -> None:
    if is_set:
        from kitchensync.virtual_kitchen.faults import KINDS

        for line in KINDS.values():
            click.echo(line)
        context.exit()


class _StartUtc(click.ParamType):
    """ISO date and time; without a zone it is UTC."""

    name = "ISO"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        """Return Unix nanoseconds."""
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(
                f"{value!r} is not an ISO date and time such as 2025-03-01T12:00:00Z", parameter, context
            )
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


@click.command()
@click.option(
    "--seed", type=click.IntRange(min=0), required=True, help="The same seed gives the same kitchen."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    help="End the streams after this many seconds; 0 never ends them.",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=1.0,
    help="How many times faster than real time the world goes; 0 is as fast as possible.",
)
@click.option(
    "--rings",
    is_flag=True,
    help="Send a second of headset packets round and round (cheap; so does --speed 0).",
)
@click.option(
    "--prepare",
    is_flag=True,
    help="Encode frames and sound of headset and camera for the usual settings before it is ready, so that a busy "
    "computer can send them in time. What is sent is the same.",
)
@click.option(
    "--ring-store",
    type=click.Path(file_okay=False, path_type=Path, resolve_path=True),
    help="Make rings before the world begins, or take them from here, where an earlier run left them.",
)
@click.option(
    "--hololens-host", default="127.0.0.1", show_default=True, help="Address of the headset's ports."
)
@click.option("--gopro-host", default="127.0.0.1", show_default=True, help="Address of the camera.")
@click.option(
    "--gopro-port",
    "gopro_ports",
    type=click.IntRange(0, 65535),
    multiple=True,
    default=(8080,),
    show_default=True,
    help="Port of the camera; 0 takes a free one. May be repeated: several cameras on one head.",
)
@click.option(
    "--gopro-model",
    default="hero12",
    show_default=True,
    help="Model of GoPro that the virtual camera reports.",
)
@click.option(
    "--gopro-chapter-seconds",
    type=click.FloatRange(min=1),
    default=None,
    help="Begin a new file after so long, as a camera does at 12 GB.",
)
@click.option(
    "--gyroscope-unit",
    type=click.Choice(["deg_per_s", "rad_per_s"]),
    default="deg_per_s",
    show_default=True,
    help="Unit that the headset's gyroscope sends.",
)
@click.option(
    "--start-utc", type=_StartUtc(), default=None, help="UTC time of the world when this command starts."
)
@click.option(
    "--replay",
    metavar="FILE.npz:NAME|FILE.MP4",
    default=None,
    help="Move the head as in these recorded gyroscope samples.",
)
@click.option(
    "--scene",
    type=click.Choice(["cooking", "board"]),
    default="cooking",
    show_default=True,
    help="board: the cook shows a calibration board, optics and mount known, far depth that of the room.",
)
@click.option("--frame-counter", is_flag=True, help="Draw its number into each camera frame.")
@click.option(
    "--fault",
    "fault_texts",
    metavar="NAME:ARGS",
    multiple=True,
    help="Inject a fault; may be repeated, --faults lists them. Camera faults hit the first camera. "
    "@armed+T for @T: T seconds after every connected stream has sent a packet. A line `fault NAME:ARGS` on "
    "standard input plays one at once.",
)
@click.option(
    "--faults",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_faults,
    help="List the faults that --fault can play.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path, resolve_path=True),
    required=True,
    help="Folder for truth.json and the files it refers to.",
)
@click.pass_obj
def simulate(
    joined: Any, seed: int, seconds: float, out: Path, fault_texts: tuple[str, ...], **more: Any
) -> None:
    """Run the virtual kitchen: a HoloLens on its standard ports and GoPros, with ground truth for all.

    Prints `ready gopro=PORT[,PORT]...` when every port accepts. World time 0 is the first data connection.

    \b
    Example: kitchensync simulate --seed 7 --seconds 60 --hololens-host 127.3.2.1 --gopro-port 0 --out sim
    """
    from kitchensync.virtual_kitchen.faults import BadFault, parse_faults

    try:
        plan = parse_faults(fault_texts)
    except BadFault as error:
        raise click.UsageError(str(error)) from error
    from kitchensync.virtual_kitchen.simulation import Options, run

    if joined is not None:
        joined["check_place"](out)
        more["shows_people"] = more["replay"] is not None and joined["shows_people"](Path(more["replay"]))
    start_utc_ns = more.pop("start_utc")
    more |= {"faults": plan, "start_utc_ns": start_utc_ns}
    options = Options(seed, out, seconds or None, **more)
    run(options)
