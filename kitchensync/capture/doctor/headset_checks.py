"""Check a headset before a session: version, ports, Research Mode, clock, combination of streams, bandwidth."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from kitchensync.capture.doctor.checks import BAD, GOOD, LOOK, Report
from kitchensync.capture.process.cpu_pressure import BUSY_PERCENT, waits_percent
from kitchensync.sensors.errors import SensorError, UnsupportedServer
from kitchensync.sensors.hololens.catalogue import STREAMS, forbidden_together, headset_stream
from kitchensync.sensors.hololens.client import StreamClient
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.remote import RemoteControl, require_version

CONNECT_S = 3.0
FIRST_PACKET_S = 6.0
EXCHANGES = 20
GOOD_ROUND_TRIP_MS, BAD_ROUND_TRIP_MS = 10.0, 60.0
COMMAND_PORTS = {"remote_configuration": 3809, "voice_input": 3815}
_OPEN, _REFUSED, _SILENT, _UNREACHABLE = "open", "refused", "silent", "unreachable"
MEANING = {
    _REFUSED: "the app is not running, or the sensor has no permission",
    _SILENT: "another client holds the port, or the network died under one: close it or restart the app",
    _UNREACHABLE: "check the address and the network, and wake the headset",
    "research": "switch on Research Mode in the headset's device portal and start the app again",
}
TOO_BUSY = "this computer is too busy to tell: end what else runs, and check again"


def examine_headset(
    host: str, streams: list[str], profile: Profile, accept_version: str | None = None
) -> Report:
    """Check a headset; each stream is opened for one packet, except those that start a camera."""
    report = Report(host)
    is_busy = waits_percent() > BUSY_PERCENT  # measured before the checks themselves cause load
    try:
        with RemoteControl(host, CONNECT_S) as remote:
            _version(report, remote.version(), accept_version)
            _clock(report, remote)
            report.add(
                "front camera", GOOD, "on" if remote.pv_is_on() else "off: it is opened when recording"
            )
    except SensorError as error:
        report.add("remote configuration", BAD, str(error), MEANING[_REFUSED])
    states = _ports(host, profile)
    report.facts["ports"] = states
    _judge_ports(report, states, streams, is_busy=is_busy)
    _combination(report, streams)
    _bandwidth(report, streams, profile)
    return report


def _version(report: Report, version: tuple[int, ...], accept: str | None) -> None:
    text = ".".join(map(str, version))
    report.facts["version"] = text
    try:
        warning = require_version(version, accept)
    except UnsupportedServer as error:
        report.add("server version", BAD, text, str(error))
    else:
        report.add("server version", LOOK if warning else GOOD, text, warning or "")


def _clock(report: Report, remote: RemoteControl) -> None:
    answers = [remote.clock_exchange() for _ in range(EXCHANGES)]
    trips = sorted((answer.host_receive_ns - answer.host_send_ns) / 1e6 for answer in answers)
    best, median, worst = trips[0], trips[len(trips) // 2], trips[-1]
    status = GOOD if median < GOOD_ROUND_TRIP_MS else LOOK if median < BAD_ROUND_TRIP_MS else BAD
    report.facts["round_trip_ms"] = {"best": best, "median": median, "worst": worst}
    result = f"{best:.2f} ms best, {median:.2f} median, {worst:.2f} worst of {EXCHANGES}"
    report.add(
        "clock exchange", status, result, "a crowded network: use a 5 GHz network of its own, or USB-C"
    )


def _ports(host: str, profile: Profile) -> dict[str, str]:
    """Return the state of every port; all are tried in parallel, streams up to their first packet."""
    with ThreadPoolExecutor(max_workers=len(STREAMS) + len(COMMAND_PORTS)) as pool:
        streams = {name: pool.submit(_try_stream, host, name, profile) for name in STREAMS}
        commands = {name: pool.submit(_try_port, host, port) for name, port in COMMAND_PORTS.items()}
        return {name: state.result() for name, state in (streams | commands).items()}


def _try_port(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except ConnectionRefusedError:
        return _REFUSED
    except OSError:
        return _UNREACHABLE
    return _OPEN


def _try_stream(host: str, name: str, profile: Profile) -> str:
    stream = STREAMS[name]
    state = _try_port(host, stream.port)
    if state != _OPEN or stream.opens_a_device:
        return state  # opening these would start a camera, or a sensor that shares a camera
    client = StreamClient(stream, host, stream.configure(profile), CONNECT_S, FIRST_PACKET_S)
    try:
        client.connect()
        client.read_frame()
    except SensorError:
        return _SILENT
    finally:
        client.close()
    return _OPEN


def _judge_ports(report: Report, states: dict[str, str], streams: list[str], *, is_busy: bool) -> None:
    research = {states[name] for name, spec in STREAMS.items() if 3800 <= spec.port <= 3808}
    others = {states[name] for name, spec in STREAMS.items() if not 3800 <= spec.port <= 3808}
    # While Research Mode is off, its ports refuse and the others do not.
    if research & {_OPEN, _SILENT}:
        report.facts["research_mode"] = True
        report.add("research mode", GOOD, "on")
    elif _OPEN in others:
        report.facts["research_mode"] = False
        report.add("research mode", BAD, "off", MEANING["research"])
    else:
        report.facts["research_mode"] = None
        report.add("research mode", LOOK, "cannot be told while no port answers", MEANING[_REFUSED])
    for name, state in states.items():
        is_needed = name in streams or name == "remote_configuration"
        port = STREAMS[name].port if name in STREAMS else COMMAND_PORTS[name]
        is_unclear = state == _SILENT and is_busy
        bad = BAD if is_needed and not is_unclear else LOOK
        meaning = TOO_BUSY if is_unclear else MEANING.get(state, "")
        report.add(f"{name} ({port})", GOOD if state == _OPEN else bad, state, meaning)


def _combination(report: Report, streams: list[str]) -> None:
    pair = forbidden_together(streams)
    result = f"{pair[0]} with {pair[1]}" if pair else "the streams can be combined"
    report.add("combination", BAD if pair else GOOD, result, "one physical sensor: leave one of them out")
    for name in streams:
        for other in headset_stream(name).unsteady_with:
            if other in streams:
                report.add(
                    "combination", LOOK, f"{other} with {name}", "reported to crash the app now and then"
                )


def _bandwidth(report: Report, streams: list[str], profile: Profile) -> None:
    megabits = sum(headset_stream(name).bits_per_s(profile) for name in streams) / 1e6
    report.facts["expected_megabit_per_s"] = round(megabits, 2)
    status = GOOD if megabits < 40 else LOOK
    report.add("bandwidth", status, f"{megabits:.1f} Mbit/s expected", "more than Wi-Fi carries: use USB-C")
