"""The whole way of a packet in one run: virtual kitchen, recording, tablet, verification, alignment, report.

    python examples/demo.py --seconds 60

Every step is a command that a lab would type; the script prints it before it runs it. The last line is PASS
only when every stream is complete, equal to what the virtual kitchen sent, and the camera is aligned.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kitchensync.capture.served_kitchen import free_host

REPOSITORY = Path(__file__).resolve().parent.parent
COMMAND = str(Path(sys.executable).parent / "kitchensync")
RECORDING = "demo"
START_LIMIT_S = 60.0
PREPARE_LIMIT_S = 600.0
"""So long a busy computer may take to encode the pictures of the virtual headset."""
ALIGNED_FROM_S = 60.0
"""A shorter demo may leave the slope of the camera's clock open: then `check` is allowed."""
LATE = "packets arrived up to"
"""What `verify` says where a busy computer took packets late, as does a virtual kitchen that gets no processor."""


class DemoFailed(Exception):
    """A step did not do what it should."""


def say(text: str) -> None:
    """Print one step with the time since the start."""
    print(f"[{time.monotonic() - START_S:5.1f} s] {text}", flush=True)


START_S = time.monotonic()


@contextlib.contextmanager
def running(arguments: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a command beside us; end it with us, whatever happens."""
    say("$ " + " ".join(Path(part).name if part == COMMAND else part for part in arguments))
    process = subprocess.Popen(arguments, text=True, start_new_session=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def ready_port(simulator: subprocess.Popen[str]) -> int:
    """Wait for the line `ready gopro=PORT` of the virtual kitchen."""
    timer = threading.Timer(PREPARE_LIMIT_S, simulator.kill)
    timer.start()
    try:
        for line in simulator.stdout or ():
            if line.startswith("ready gopro="):
                return int(line.partition("=")[2])
    finally:
        timer.cancel()
    raise DemoFailed("the virtual kitchen did not get ready")


def wait_for_app(app: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait until the recipe app serves; return its address and the invite of its first start."""
    timer = threading.Timer(START_LIMIT_S, app.kill)
    timer.start()
    try:
        invite = ""
        for line in app.stdout or ():
            if line.startswith("invite="):
                invite = line.partition("=")[2].strip()
            if line.startswith("ready app="):
                return line.partition("=")[2].strip(), invite
    finally:
        timer.cancel()
    raise DemoFailed("the recipe app did not get ready")


def command(arguments: list[str]) -> dict[str, Any]:
    """Run one command to its end and return its JSON answer."""
    say("$ kitchensync " + " ".join(arguments))
    done = subprocess.run([COMMAND, *arguments, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise DemoFailed(
            f"kitchensync {arguments[0]} gave no answer (exit code {done.returncode})"
        ) from error
    return answer


def record(folder: Path, seconds: float, seed: int, replay: str | None) -> None:
    """Let the virtual kitchen run, and record it together with a virtual participant at the tablet."""
    host = free_host()
    data, sim = folder / "data", folder / "sim"
    data.mkdir(parents=True)
    simulate = [COMMAND, "simulate", "--seed", str(seed), "--seconds", f"{seconds:g}", "--out", str(sim)]
    simulate += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0"]
    simulate += ["--replay", replay] if replay else ["--prepare"]
    recipes = str(REPOSITORY / "kitchensync" / "examples" / "recipes")
    app = [COMMAND, "app", "--data", str(data), "--port", "0", "--recipes", recipes]
    with (
        running(simulate, stdout=subprocess.PIPE) as simulator,
        running(app, stdout=subprocess.PIPE) as server,
    ):
        camera = f"http://{host}:{ready_port(simulator)}"
        tablet = [sys.executable, "-P", "-m", "kitchensync.virtual_kitchen.tablet", "--recording", RECORDING]
        tablet += ["--seconds", f"{max(seconds - 8, 4):g}", "--seed", str(seed)]
        url, invite = wait_for_app(server)
        tablet += ["--url", url, "--out", str(sim / "tablet.json")]
        secret = {**os.environ, "KITCHENSYNC_INVITE": invite}  # in no command that is shown or listed
        take = [COMMAND, "record", RECORDING, "--data", str(data), "--hololens", host, "--gopro", camera]
        take += ["--participant", "virtual-1", "--place", "virtual kitchen"]
        with running(take) as recorder:
            wait_for_manifest(data / RECORDING / "recording.json", recorder)
            with running(tablet, stdout=subprocess.DEVNULL, env=secret) as participant:
                if recorder.wait() != 0:
                    raise DemoFailed(f"record ended with exit code {recorder.returncode}")
                if participant.wait(timeout=30) != 0:
                    raise DemoFailed(
                        f"the participant's tablet ended with exit code {participant.returncode}"
                    )
        simulator.terminate()  # everything is here: it need not wait for more clients
        if simulator.wait(timeout=60) != 0:
            raise DemoFailed(f"the virtual kitchen ended with exit code {simulator.returncode}")


def wait_for_manifest(path: Path, recorder: subprocess.Popen[str]) -> None:
    """Wait until the recording has begun."""
    while not path.exists():
        if recorder.poll() is not None:
            raise DemoFailed(f"record ended with exit code {recorder.returncode}")
        time.sleep(0.05)


def unlike_sent(checked: dict[str, Any], truth: dict[str, Any]) -> dict[str, str]:
    """Compare each stream that was stored with what the virtual kitchen says it sent."""
    found = {}
    for name, sent in truth["streams"].items():
        stored = checked["streams"].get(name)
        if stored and (stored["stored"], stored["sha256"]) != (sent["packets"], sent["sha256"]):
            found[name] = f"{name}: {sent['packets']} packets sent, {stored['stored']} stored"
    return found


def objections(checked: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """Return what `verify` objects to; where all that was sent is here, what a busy computer sent late is printed."""
    late = {reason.partition(":")[0] for reason in checked["reasons"] if LATE in reason}
    whole = truth["streams"].keys() - unlike_sent(checked, truth)
    found = []
    for reason in checked["reasons"]:
        stream, _, what = reason.partition(": ")
        if LATE in reason:
            say(f"this computer was busy: {reason}")
        elif stream in late & whole and what.startswith("covers"):
            say(f"this computer was busy: {reason}; nothing that was sent is missing")
        else:
            found.append(f"verify: {reason}")
    return found


def differences(checked: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """Return what `verify` objects to, and what was not stored as the virtual kitchen sent it."""
    found = objections(checked, truth) + list(unlike_sent(checked, truth).values())
    for file in truth["gopro"]:
        stored = checked["streams"].get(f"gopro/{file['file']}")
        if stored is None or stored["sha256"] != file["sha256"]:
            found.append(f"gopro/{file['file']}: not byte for byte what the camera made")
    return found


def judge(folder: Path, seconds: float) -> list[str]:
    """Verify, align and report; return what is not as it should be."""
    recording = folder / "data" / RECORDING
    checked = command(["verify", str(recording)])
    truth = json.loads((folder / "sim" / "truth.json").read_text())
    problems = differences(checked, truth)
    for name, facts in checked["streams"].items():
        print(f"          {name:28} {facts['stored']:>9} stored, {len(facts['gaps'])} gaps", flush=True)
    aligned = command(["sync", str(recording)])["recordings"][0]
    for pair in aligned["pairs"]:
        print(f"          {pair['status']}: {'; '.join(pair['reasons']) or 'no objection'}", flush=True)
    allowed = ("aligned",) if seconds >= ALIGNED_FROM_S else ("aligned", "check")
    if aligned["status"] not in allowed:
        problems.append(f"sync says {aligned['status']}")
    say(f"$ kitchensync report {recording}")
    if subprocess.run([COMMAND, "report", str(recording)], stdout=subprocess.DEVNULL, check=False).returncode:
        problems.append("report failed")
    return problems


def main() -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the recording")
    parser.add_argument("--seed", type=int, default=1, help="which virtual kitchen")
    parser.add_argument("--replay", help="a real head motion, see `kitchensync simulate --help`")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "demo" / "last", help="replaced by each run")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True)
    try:
        record(arguments.out, arguments.seconds, arguments.seed, arguments.replay)
        problems = judge(arguments.out, arguments.seconds)
    except (DemoFailed, subprocess.TimeoutExpired) as error:
        problems = [str(error)]
    except KeyboardInterrupt:
        say("stopped by Ctrl-C; nothing is left running")
        return 130
    report = arguments.out / "data" / RECORDING / "sync" / "report.html"
    if report.exists():
        say(f"report: {report}")
    for problem in problems:
        print(f"  - {problem}")
    print("FAIL" if problems else "PASS")
    return 1 if problems else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
