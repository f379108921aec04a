"""The supervisor of one recording: starts its processes, restarts what dies, and ends them in the right order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kitchensync.capture.camera.camera_recorder import CameraRecorder
from kitchensync.capture.errors import (
    NotRunning,
    ProcessKeepsDying,
    QueueSilent,
    QueueUnavailable,
    StreamsMissing,
)
from kitchensync.capture.plan import Plan
from kitchensync.capture.process.cpu_pressure import waits_percent
from kitchensync.capture.process.fork_server import ForkServer
from kitchensync.capture.process.health import HealthBoard
from kitchensync.capture.process.heartbeat import Heartbeat
from kitchensync.capture.process.log import RecordingLog, tell, warn
from kitchensync.capture.process.outcome import NO_SPACE, Outcome
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.session.alarms import (
    QueueWatch,
    StorageTrouble,
    lost_streams,
    mute_processes,
    queue_faults,
    quiet_streams,
)
from kitchensync.capture.session.child_processes import LAST_WORD_S, WORKER, ChildProcesses, DrainProgress
from kitchensync.capture.session.closing import RESERVE, RESERVE_BYTES, UndrainedStream, set_aside
from kitchensync.capture.session.control import ControlServer, Request
from kitchensync.shell.host_clock import host_ns
from kitchensync.shell.loopback import is_loopback_address
from kitchensync.storage.disk.space_guard import STOP, DiskGuard, Outlook
from kitchensync.storage.events import EventLog
from kitchensync.storage.ledger import BY_DEVICE
from kitchensync.storage.move.mover_process import MoverProcess
from kitchensync.storage.names import LOGS
from kitchensync.storage.privacy import OPERATOR, PAUSE, RESUME
from kitchensync.storage.reading.swaps import SWAP, SWAPPED

LOOP_MS = 100
PRODUCER_END_S = 40.0
DRAIN_LIMIT_S = 120.0
"""So long nothing more may be stored before what is left is given up; at half of it what hangs is killed."""
NO_SPACE_LIMIT_S = 15.0
LOW_SPACE_BYTES = 200 << 20
KEPT = ("mark", PAUSE, RESUME, SWAP, SWAPPED)
"""Requests that are kept as events."""


class Supervisor:
    """Runs one recording from the first process to the last."""

    def __init__(
        self,
        plan: Plan,
        server: QueueServer | None,
        cameras: list[CameraRecorder],
        *,
        hold: int | None = None,
        forks: ForkServer | None = None,
        mover: MoverProcess | None = None,
        close: Callable[[Outcome], list[UndrainedStream]] = lambda _: [],
        override: bool = False,
    ) -> None:
        """`server` is ours to keep up, or None when the queue is somebody else's; `hold` see `SupervisedProcess`.

        Without `forks` every process is started anew. `close` closes the ledger once everything is stored, and says
        what still waits. With `override` it begins though streams are missing.
        """
        self.plan = plan
        self._mover = mover
        self.server = server
        self.cameras = cameras
        self.outcome = Outcome()
        self.board = HealthBoard(plan.health)
        self._control = ControlServer(plan.control)
        self._heart = Heartbeat(Path(plan.work))
        self._log = RecordingLog(Path(plan.path) / LOGS, "supervisor")
        self._guard = DiskGuard(Path(plan.path), reserve_bytes=LOW_SPACE_BYTES)
        self.outlook: Outlook | None = None
        self.waiting = ""
        "What the end of the recording waits for, with seconds."
        self._queue_watch = QueueWatch(plan.queue_url)
        self._stop_asked = ""
        self._close = close
        self._override = override
        self._left: list[UndrainedStream] | None = None
        self._forced = False
        self._reserve = Path(plan.work) / RESERVE
        self._trouble = StorageTrouble(plan, self.board)
        self.children = ChildProcesses(plan, self.outcome, hold, forks or ForkServer(WORKER))

    def ask_stop(self, why: str) -> None:
        """Ask the end of the recording; a second time it ends without waiting for a slow camera."""
        self._forced = bool(self._stop_asked)
        self._stop_asked = self._stop_asked or why

    def closed(self) -> list[UndrainedStream]:
        """Close the ledger where that is not done; return what the queue still holds."""
        if self._left is None:
            self.outcome.aside = self._trouble.aside()
            self._left = self._close(self.outcome)
        return self._left

    def streams(self) -> dict[str, dict[str, Any]]:
        """Return the newest state of every sensor stream, received and stored."""
        known: dict[str, dict[str, Any]] = {name: {} for name in self.plan.sensor_streams()}
        for state in self.board.states.values():
            for name, facts in state.get("streams", {}).items():
                if name in known:
                    known[name] |= facts
        return known

    def _befallen(self) -> list[str]:
        """Return what befell the recording or keeps it from being stored, in words."""
        return [*self.outcome.problems, *self._trouble.words()]

    def problems(self) -> list[str]:
        """Return what is wrong now, in words: what befell the recording, and what does not get on."""
        cameras = [f"{one.device}: {one.state.problem}" for one in self.cameras if one.state.problem]
        copies = self._mover.progress() if self._mover is not None else []
        stores = [f"{one['target']}: {one['problem']}" for one in copies if one["problem"]]
        clock = [step.fact for step in self._heart.clock_steps[-1:]]
        return [*self._befallen(), *self._alarms(), *cameras, *stores, *clock]

    def _alarms(self) -> list[str]:
        """Report what does not come; what the queue server holds up is no fault of a process or a device."""
        if refused := self._refused():
            return [f"the queue server refuses writes: {refused}; packets wait for it"]
        if silent_s := self._queue_watch.silent_s:
            return [f"the queue server has not answered for {silent_s:.0f} s; packets wait for it"]
        now_ns = host_ns()
        mute = mute_processes(self.board.states, now_ns)
        faults = queue_faults(self._queue_watch.evicts, self.board.vanished_ns, now_ns)
        return [*faults, *mute.values(), *quiet_streams(self.streams(), now_ns, mute)]

    def _refused(self) -> str:
        """Return the queue server's words while it refuses what a recording asks of it, "" otherwise."""
        told = (str(state.get("refused") or "") for state in self.board.states.values())
        return self._queue_watch.refusal or next(filter(None, told), "")

    def run(self, seconds: float | None, start_timeout_s: float, show: Callable[[Supervisor], None]) -> None:
        """Record until the time, a request, or the end of every stream; then end everything in order.

        Raises StreamsMissing when an armed stream gives nothing in time.
        """
        tell("recording begins", recording=self.plan.recording, uuid=self.plan.uuid, pid=os.getpid())
        set_aside(self._reserve, RESERVE_BYTES)
        self._queue_watch.start()
        try:
            for worker in self.children.all:
                worker.start()
            self._wait_for_first_packets(start_timeout_s, show)
            if not self._stop_asked:
                for camera in self.cameras:
                    camera.start()
            self._guarded(lambda: self._watch(seconds, show))
            self._guarded(lambda: self._end(show))
        finally:
            self._kill_all()

    def drain(self) -> None:
        """Store what the queue of a killed recorder still holds."""
        warn("recording is recovered", recording=self.plan.recording, pid=os.getpid())
        self.outcome.reason = "recovered"
        try:
            for worker in self.children.drainers:
                worker.start_to_end()
            self._guarded(lambda: self._end_drainers(lambda _: None))
        finally:
            self._kill_all()

    def _guarded(self, step: Callable[[], object]) -> None:
        """Do a step; a process that does not stay up ends the recording, in order, and is named."""
        try:
            step()
        except ProcessKeepsDying as error:
            self.outcome.problems.append(str(error))
            self.outcome.reason = self.outcome.reason or "failed"

    def _wait_for_first_packets(self, limit_s: float, show: Callable[[Supervisor], None]) -> None:
        end_s = time.monotonic() + limit_s
        while not self._stop_asked:
            self._turn(show)
            missing = {
                name: facts.get("problem") or facts.get("state", "not started")
                for name, facts in self.streams().items()
                if not facts.get("first_host_ns")
            }
            is_enough = self._override and time.monotonic() > end_s and len(missing) < len(self.streams())
            if not missing or is_enough:
                self.outcome.first_packets, self.outcome.missing = True, missing
                return
            if (waits_s := self._queue_watch.waits_s) > limit_s:
                raise QueueSilent(waits_s, self._refused())
            if time.monotonic() > end_s + self._queue_watch.held_s:
                raise StreamsMissing(missing, limit_s)

    def _watch(self, seconds: float | None, show: Callable[[Supervisor], None]) -> None:
        end_s = None if seconds is None else time.monotonic() + seconds
        while not self._stop_asked:
            self._turn(show)
            if end_s is not None and time.monotonic() >= end_s:
                self.ask_stop("time")
            elif self.children.all_producers_ended():
                self.ask_stop(BY_DEVICE)
            elif self._space_runs_out():
                self.ask_stop(NO_SPACE)
                self.outcome.problems.append("the disk is nearly full: the recording was stopped early")
            elif self._trouble.fills_queue():
                self.ask_stop("failed")
                self.outcome.problems.append("the queue is nearly full: the recording was stopped early")
        self.outcome.reason = self._stop_asked
        tell("recording ends", reason=self._stop_asked)

    def _turn(self, show: Callable[[Supervisor], None]) -> None:
        """One round: hear the processes, answer requests, restart the dead."""
        self._heart.beat()
        asked = self._hear()
        if "abort" in asked:
            self.ask_stop("aborted")
        elif "stop" in asked:
            self.ask_stop("requested")
        self.children.restart_dead()
        if self._mover is not None and (code := self._mover.restart()) is not None:
            self.outcome.restarted("mover", code)
        show(self)

    def _hear(self) -> list[str]:
        """Hear the processes, keep the queue server up, tell who asks how it is; return what was asked."""
        self.board.update(LOOP_MS)
        self._trouble.look()
        if refused := self._refused():
            note = f"the queue server refused writes for a while: {refused}; packets waited for it"
            self.outcome.notes += [note] if note not in self.outcome.notes else []
        if self.server is not None and not self.server.is_up():
            code = self.server.process.returncode if self.server.process else None
            self.outcome.restarted("queue server", code)
            self.server.start()
        return self._control.requests(self._state, self._heed)

    def _heed(self, request: Request) -> None:
        """Keep what the operator says of the recording. Raises NotRunning when it has been stopped, OSError."""
        if request.command == "leave_films":
            self._forced = bool(self._stop_asked)
        if request.command not in KEPT:
            return
        if self._stop_asked:
            raise NotRunning(self.plan.recording, [])
        EventLog(Path(self.plan.path), OPERATOR).append(
            request.command, host_ns=request.host_ns, uncertainty_ns=0, body={"text": request.text}
        )

    def _state(self) -> dict[str, Any]:
        """Return what other processes of this user may ask for: facts, not judged."""
        going = "recording" if self.outcome.first_packets else "starting"
        queue = self.server.process if self.server is not None else None
        return {
            "recording": self.plan.recording,
            "path": self.plan.path,
            "pid": os.getpid(),
            "host_ns": host_ns(),
            "waits_percent": waits_percent(),
            "here": [one.name for one in self.plan.headsets if is_loopback_address(one.host)],
            "processes": self.children.pids() | ({"queue server": queue.pid} if queue is not None else {}),
            "heard": self.board.heard(),
            "cameras": {one.device: asdict(one.state) for one in self.cameras},
            "disk": self.outlook.facts() if self.outlook is not None else {},
            "stores": self._mover.progress() if self._mover is not None else [],
            "phase": "stopping" if self._stop_asked or self.outcome.reason else going,
            "stop_asked": self._stop_asked,
            "ledger_closed": self._left is not None,
            "problems": self.problems(),
            "befallen": self._befallen(),
            "waiting": self.waiting,
            "restarts": self.outcome.restarts,
            "streams": self.streams(),
            "clock_set_by_ns": [step.by_ns for step in self._heart.clock_steps],
            "queue_refuses": self._refused(),
            "queue_silent_s": self._queue_watch.silent_s,
            "queue_evicts": self._queue_watch.evicts,
            "queue_vanished_ns": self.board.vanished_ns,
        }

    def _space_runs_out(self) -> bool:
        """Look at the disk, keep what it says for the operator, and tell whether it is time to stop."""
        try:
            self.outlook = self._guard.look(time.monotonic_ns())
        except FileNotFoundError:
            return False  # the recording's folder is gone: that is told already
        return self.outlook.level == STOP or self._trouble.lacks_space()

    def _make_room(self) -> None:
        """Where room is lacking give back what was kept aside, so that what is on its way can still be sealed."""
        if not self._trouble.lacks_space():
            return
        self._reserve.unlink(missing_ok=True)
        if self.server is not None:
            try:
                self.server.give_up_persistence()
            except QueueUnavailable as error:
                warn("the queue's files could not be given up yet", error=str(error))

    def _end(self, show: Callable[[Supervisor], None]) -> None:
        """End in the order of the packets' way: cameras and producers, then drainers, then the queue."""
        ended_ns = host_ns()
        for camera in self.cameras:
            camera.end()
        self._end_producers(show)
        is_stored = self._end_drainers(show)
        self.outcome.problems += lost_streams(self.streams(), ended_ns)
        if self.board.vanished_ns:
            self.outcome.problems.append("streams vanished from the queue server while it recorded")
        if is_stored:
            self.closed()  # before films come, which may take long: what was received is accounted for now
        while (alive := [one.device for one in self.cameras if one.is_alive()]) and not self._forced:
            again = " again" if self._stop_asked == "signal" else ""
            self.waiting = f"waiting for {', '.join(alive)}; Ctrl-C{again} leaves the files on the card"
            self._hear()
            show(self)

    def _end_producers(self, show: Callable[[Supervisor], None]) -> None:
        begin_s = time.monotonic()
        for worker in self.children.producers:
            worker.end()
        while alive := self.children.busy_producers():
            for_s = time.monotonic() - begin_s
            self.waiting = f"waiting for {', '.join(alive)} to end ({for_s:.0f} of {PRODUCER_END_S:g} s)"
            self._heart.beat()
            self._hear()
            self.children.keep_drainers()
            self._make_room()
            show(self)
            if for_s > PRODUCER_END_S:
                self.outcome.problems.append("a producer did not end in time and was killed")
                for worker in self.children.producers:
                    worker.kill()

    def _end_drainers(self, show: Callable[[Supervisor], None]) -> bool:
        """Let the drainers empty the queue; one that dies while doing so, or hangs, is started again.

        False when they could not in time, and may still be at it.
        """
        progress = DrainProgress()
        while self.children.end_drainers():
            self._hear()
            show(self)
            self._make_room()
            idle_s = progress.look(self.board.states)
            self.waiting = (
                f"storing what the queue holds (nothing more for {idle_s:.0f} of {DRAIN_LIMIT_S:g} s)"
            )
            if progress.is_time_to_kill(DRAIN_LIMIT_S / 2):
                for worker in self.children.drainers:
                    worker.kill()
            if self._trouble.hopeless_s() > NO_SPACE_LIMIT_S or idle_s > DRAIN_LIMIT_S:
                warn("not everything in the queue could be stored", idle_s=idle_s)
                return False
        return True

    def _kill_all(self) -> None:
        """Leave no process behind, whatever happened; producers may still close the headset's camera."""
        self.outcome.aside = self._trouble.aside()
        self.children.kill_all()
        for camera in self.cameras:
            camera.end()  # nobody watches it from here on: it closes its shutter
            if camera.is_alive() and not self._forced:
                camera.join(LAST_WORD_S)

    def close(self) -> None:
        """Close sockets and files."""
        self._queue_watch.stop()
        tell("everything has ended", problems=self.outcome.problems, restarts=len(self.outcome.restarts))
        self._log.close()
        self._heart.close()
        self.board.close()
        self._control.close()
