"""The supervisor of one recording: starts its processes, restarts those that die, and ends them in order."""

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
from kitchensync.capture.process.log import RecordingLog, log_event, log_warning
from kitchensync.capture.process.outcome import NO_SPACE, Outcome
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.session.alarms import (
    QueueWatch,
    StorageTrouble,
    lost_streams,
    queue_faults,
    quiet_streams,
    silent_processes,
)
from kitchensync.capture.session.child_processes import KILL_AFTER_S, WORKER, ChildProcesses, DrainProgress
from kitchensync.capture.session.closing import RESERVE, RESERVE_BYTES, UndrainedStream, reserve_space
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

LOOP_MS = 100  # a request for the state waits for one round, see ASK_MS of the monitor
PRODUCER_END_S = 40.0  # above the limits of a producer itself for plug-in, clock probe, camera and sync
DRAIN_LIMIT_S = 120.0
"""Time without progress after which the drainers are given up; at half of it hanging drainers are killed."""
NO_SPACE_LIMIT_S = 15.0
LOW_SPACE_BYTES = 200 << 20
EVENT_COMMANDS = ("mark", PAUSE, RESUME, SWAP, SWAPPED)
"""Requests that are kept as events."""


class Supervisor:
    """Runs one recording from its start to its end."""

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
        """Open the sockets; no process is started yet.

        `server` is our own queue server, or None if it is external. `hold` and `forks` see `SupervisedProcess`.
        `close` closes the ledger once everything is stored and returns what is still queued. With `override` the
        recording begins although streams are missing.
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
        """What the end of the recording waits for, as a message with seconds."""
        self._queue_watch = QueueWatch(plan.queue_url)
        self._stop_reason = ""
        self._close = close
        self._override = override
        self._undrained: list[UndrainedStream] | None = None
        self._forced = False
        self._reserve = Path(plan.work) / RESERVE
        self._trouble = StorageTrouble(plan, self.board)
        self.children = ChildProcesses(plan, self.outcome, hold, forks or ForkServer(WORKER))

    def request_stop(self, why: str) -> None:
        """End the recording; a second request ends it without waiting for a slow camera."""
        self._forced = bool(self._stop_reason)
        self._stop_reason = self._stop_reason or why

    def closed(self) -> list[UndrainedStream]:
        """Close the ledger if that is not done yet; return the packets that are still queued."""
        if self._undrained is None:
            self.outcome.aside = self._trouble.aside()
            self._undrained = self._close(self.outcome)
        return self._undrained

    def streams(self) -> dict[str, dict[str, Any]]:
        """Return the newest state of every sensor stream, received and stored."""
        streams: dict[str, dict[str, Any]] = {name: {} for name in self.plan.sensor_streams()}
        for state in self.board.states.values():
            for name, facts in state.get("streams", {}).items():
                if name in streams:
                    streams[name] |= facts
        return streams

    def _recorded_problems(self) -> list[str]:
        """Return messages about what went wrong so far and what cannot be stored."""
        return [*self.outcome.problems, *self._trouble.problems()]

    def problems(self) -> list[str]:
        """Return messages about everything that is wrong."""
        cameras = [
            f"{camera.device}: {camera.state.problem}" for camera in self.cameras if camera.state.problem
        ]
        copies = self._mover.progress() if self._mover is not None else []
        stores = [f"{copy['target']}: {copy['problem']}" for copy in copies if copy["problem"]]
        clock = [step.fact for step in self._heart.clock_steps[-1:]]
        return [*self._recorded_problems(), *self._alarms(), *cameras, *stores, *clock]

    def _alarms(self) -> list[str]:
        """Return messages about a stalled queue server, else about silent processes and streams."""
        # A stalled queue server silences processes and streams too, so it is reported alone.
        if refused := self._refused():
            return [f"the queue server refuses writes: {refused}; packets wait for it"]
        if silent_s := self._queue_watch.silent_s:
            return [f"the queue server has not answered for {silent_s:.0f} s; packets wait for it"]
        now_ns = host_ns()
        silent = silent_processes(self.board.states, now_ns)
        faults = queue_faults(self._queue_watch.evicts, self.board.vanished_ns, now_ns)
        return [*faults, *silent.values(), *quiet_streams(self.streams(), now_ns, silent)]

    def _refused(self) -> str:
        """Return the queue server's error message while it refuses writes, else ""."""
        refusals = (str(state.get("refused") or "") for state in self.board.states.values())
        return self._queue_watch.refusal or next(filter(None, refusals), "")

    def run(self, seconds: float | None, start_timeout_s: float, show: Callable[[Supervisor], None]) -> None:
        """Record until the time is over, a request comes, or every stream has ended; then end everything in order.

        Raises StreamsMissing if an armed stream delivers nothing in time.
        """
        log_event("recording begins", recording=self.plan.recording, uuid=self.plan.uuid, pid=os.getpid())
        reserve_space(self._reserve, RESERVE_BYTES)  # freed on a full disk, to seal what is queued
        self._queue_watch.start()
        try:
            for worker in self.children.all:
                worker.start()
            self._wait_for_first_packets(start_timeout_s, show)
            # Only now, as a recording that is refused before must not leave a clip on the card.
            if not self._stop_reason:
                for camera in self.cameras:
                    camera.start()
            self._guarded(lambda: self._watch(seconds, show))
            self._guarded(lambda: self._end(show))
        finally:
            self._kill_all()

    def drain(self) -> None:
        """Store what the queue of a killed recorder still holds."""
        log_warning("recording is recovered", recording=self.plan.recording, pid=os.getpid())
        self.outcome.reason = "recovered"
        try:
            for worker in self.children.drainers:
                worker.start_to_end()
            self._guarded(lambda: self._end_drainers(lambda _: None))
        finally:
            self._kill_all()

    def _guarded(self, step: Callable[[], object]) -> None:
        """Do a step; a process that keeps dying ends the recording and is noted as its problem."""
        try:
            step()
        except ProcessKeepsDying as error:
            self.outcome.problems.append(str(error))
            self.outcome.reason = self.outcome.reason or "failed"

    def _wait_for_first_packets(self, limit_s: float, show: Callable[[Supervisor], None]) -> None:
        end_s = time.monotonic() + limit_s
        while not self._stop_reason:
            self._one_round(show)
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
        while not self._stop_reason:
            self._one_round(show)
            if end_s is not None and time.monotonic() >= end_s:
                self.request_stop("time")
            elif self.children.all_producers_ended():
                self.request_stop(BY_DEVICE)
            elif self._space_runs_out():
                self.request_stop(NO_SPACE)
                self.outcome.problems.append("the disk is nearly full: the recording was stopped early")
            elif self._trouble.fills_queue():
                self.request_stop("failed")
                self.outcome.problems.append("the queue is nearly full: the recording was stopped early")
        self.outcome.reason = self._stop_reason
        log_event("recording ends", reason=self._stop_reason)

    def _one_round(self, show: Callable[[Supervisor], None]) -> None:
        """Receive states, answer requests, restart dead processes."""
        self._heart.beat()
        commands = self._serve()
        if "abort" in commands:
            self.request_stop("aborted")
        elif "stop" in commands:
            self.request_stop("requested")
        self.children.restart_dead()
        if self._mover is not None and (code := self._mover.restart()) is not None:
            self.outcome.restarted("mover", code)
        show(self)

    def _serve(self) -> list[str]:
        """Receive states, keep the queue server running, answer requests; return their commands."""
        self.board.update(LOOP_MS)
        self._trouble.update()
        if refused := self._refused():
            note = f"the queue server refused writes for a while: {refused}; packets waited for it"
            self.outcome.notes += [note] if note not in self.outcome.notes else []
        if self.server is not None and not self.server.is_up():
            code = self.server.process.returncode if self.server.process else None
            self.outcome.restarted("queue server", code)
            self.server.start()
        return self._control.requests(self._state, self._handle)

    def _handle(self, request: Request) -> None:
        """Keep the operator's events. Raises NotRunning if the recording has been stopped, OSError."""
        if request.command == "leave_films":
            self._forced = bool(self._stop_reason)
        if request.command not in EVENT_COMMANDS:
            return
        if self._stop_reason:
            raise NotRunning(self.plan.recording, [])
        EventLog(Path(self.plan.path), OPERATOR).append(
            request.command, host_ns=request.host_ns, uncertainty_ns=0, body={"text": request.text}
        )

    def _state(self) -> dict[str, Any]:
        """Return the state of the recording for other processes of this user."""
        phase = "recording" if self.outcome.first_packets else "starting"
        if self._stop_reason or self.outcome.reason:
            phase = "stopping"
        queue = self.server.process if self.server is not None else None
        return {
            "recording": self.plan.recording,
            "path": self.plan.path,
            "pid": os.getpid(),
            "host_ns": host_ns(),
            "waits_percent": waits_percent(),
            "here": [headset.name for headset in self.plan.headsets if is_loopback_address(headset.host)],
            "processes": self.children.pids() | ({"queue server": queue.pid} if queue is not None else {}),
            "heard": self.board.reports(),
            "cameras": {camera.device: asdict(camera.state) for camera in self.cameras},
            "disk": self.outlook.facts() if self.outlook is not None else {},
            "stores": self._mover.progress() if self._mover is not None else [],
            "phase": phase,
            "stop_asked": self._stop_reason,
            "ledger_closed": self._undrained is not None,
            "problems": self.problems(),
            "befallen": self._recorded_problems(),
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
        """Update the outlook of the disk; return whether the recording has to stop."""
        try:
            self.outlook = self._guard.look(time.monotonic_ns())
        except FileNotFoundError:
            return False  # the recording's folder is gone, which `StorageTrouble` reports
        return self.outlook.level == STOP or self._trouble.lacks_space()

    def _make_room(self) -> None:
        """On a full disk, free the reserved space so that received packets can still be sealed."""
        if not self._trouble.lacks_space():
            return
        self._reserve.unlink(missing_ok=True)
        if self.server is not None:
            try:
                self.server.give_up_persistence()
            except QueueUnavailable as error:
                log_warning("the queue's files could not be given up yet", error=str(error))

    def _end(self, show: Callable[[Supervisor], None]) -> None:
        """End in the order in which packets travel: cameras and producers, then drainers, then the queue."""
        ended_ns = host_ns()
        for camera in self.cameras:
            camera.end()
        self._end_producers(show)
        is_stored = self._end_drainers(show)
        self.outcome.problems += lost_streams(self.streams(), ended_ns)
        if self.board.vanished_ns:
            self.outcome.problems.append("streams vanished from the queue server while it recorded")
        if is_stored:
            self.closed()  # before the videos are copied, which may take long
        while (alive := [camera.device for camera in self.cameras if camera.is_alive()]) and not self._forced:
            again = " again" if self._stop_reason == "signal" else ""
            self.waiting = f"waiting for {', '.join(alive)}; Ctrl-C{again} leaves the files on the card"
            self._serve()
            show(self)

    def _end_producers(self, show: Callable[[Supervisor], None]) -> None:
        begin_s = time.monotonic()
        for worker in self.children.producers:
            worker.end()
        while alive := self.children.busy_producers():
            for_s = time.monotonic() - begin_s
            self.waiting = f"waiting for {', '.join(alive)} to end ({for_s:.0f} of {PRODUCER_END_S:g} s)"
            self._heart.beat()
            self._serve()
            self.children.keep_drainers()
            self._make_room()
            show(self)
            if for_s > PRODUCER_END_S:
                self.outcome.problems.append("a producer did not end in time and was killed")
                for worker in self.children.producers:
                    worker.kill()

    def _end_drainers(self, show: Callable[[Supervisor], None]) -> bool:
        """Let the drainers empty the queue, restart those that die or hang; return whether they succeeded in time."""
        progress, has_killed = DrainProgress(), False
        while self.children.end_drainers():
            self._serve()
            show(self)
            self._make_room()
            idle_s = progress.idle_s(self.board.states)
            self.waiting = (
                f"storing what the queue holds (nothing more for {idle_s:.0f} of {DRAIN_LIMIT_S:g} s)"
            )
            if idle_s >= DRAIN_LIMIT_S / 2 and not has_killed:
                has_killed = True
                for worker in self.children.drainers:
                    worker.kill()
            if self._trouble.hopeless_s() > NO_SPACE_LIMIT_S or idle_s > DRAIN_LIMIT_S:
                log_warning("not everything in the queue could be stored", idle_s=idle_s)
                return False
        return True

    def _kill_all(self) -> None:
        """Kill all processes and stop the cameras."""
        self.outcome.aside = self._trouble.aside()
        self.children.kill_all()
        for camera in self.cameras:
            camera.end()
            if camera.is_alive() and not self._forced:
                camera.join(KILL_AFTER_S)

    def close(self) -> None:
        """Close sockets and files."""
        self._queue_watch.stop()
        log_event("everything has ended", problems=self.outcome.problems, restarts=len(self.outcome.restarts))
        self._log.close()
        self._heart.close()
        self.board.close()
        self._control.close()
