"""Start, restart and end the producers and drainers of one recording."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kitchensync.capture.errors import ProcessKeepsDying
from kitchensync.capture.plan import Plan
from kitchensync.capture.process.fork_server import ForkServer
from kitchensync.capture.process.outcome import Outcome
from kitchensync.capture.process.supervised_process import SupervisedProcess
from kitchensync.storage.names import LOGS

KILL_AFTER_S = 4.0
"""Time that processes have to end by themselves before they are killed."""
WORKER = [sys.executable, "-P", "-m", "kitchensync.capture.worker"]


class ChildProcesses:
    """Producers, which read the devices, and drainers, which store the queue. Restarts are noted in `outcome`."""

    def __init__(self, plan: Plan, outcome: Outcome, hold: int | None, forks: ForkServer) -> None:
        """Create the processes without starting them; `SupervisedProcess` describes `hold` and `forks`."""
        self._outcome = outcome
        self._given_up: set[str] = set()
        plan_file = str(Path(plan.work) / "plan.json")

        def worker(role: str, name: str) -> SupervisedProcess:
            log = Path(plan.path) / LOGS / f"{role}-{name.replace(' ', '-')}.log"
            return SupervisedProcess(f"{role} {name}", [role, plan_file, name], log, hold, forks)

        self.producers = [worker("producer", device) for device in plan.producers]
        count = plan.drainers if plan.producers else 0
        self.drainers = [worker("drainer", str(number)) for number in range(count)]

    @property
    def all(self) -> list[SupervisedProcess]:
        """All processes in the order in which they are started: drainers first."""
        return [*self.drainers, *self.producers]

    def pids(self) -> dict[str, int]:
        """Return the process ids of the running processes, by name."""
        workers = [*self.producers, *self.drainers]
        return {worker.name: worker.process.pid for worker in workers if worker.process is not None}

    def restart_dead(self) -> None:
        """Restart processes that died; a producer may end by itself. Raises ProcessKeepsDying."""
        for worker in self.all:
            code = worker.returncode()
            if code is not None and not (code == 0 and worker in self.producers):
                self._outcome.restarted(worker.name, code)
                worker.restart()

    def all_producers_ended(self) -> bool:
        """Return whether every device has ended its streams itself."""
        return bool(self.producers) and all(worker.returncode() == 0 for worker in self.producers)

    def busy_producers(self) -> list[str]:
        """Return the names of the producers that still run."""
        return [worker.name for worker in self.producers if worker.process and worker.returncode() is None]

    def keep_drainers(self) -> None:
        """Restart dead drainers while the producers end."""
        for worker in self.drainers:
            if (code := worker.returncode()) is not None:
                self._restart_while_ending(worker, code)

    def end_drainers(self) -> bool:
        """Tell the drainers to empty the queue, restart those that died; return whether any still runs."""
        busy = [
            worker
            for worker in self.drainers
            if worker.returncode() != 0 and worker.name not in self._given_up
        ]
        for worker in busy:
            if (code := worker.returncode()) is None:
                worker.end()
            else:
                self._restart_while_ending(worker, code)
        return bool(busy)

    def _restart_while_ending(self, worker: SupervisedProcess, code: int) -> None:
        """Restart a drainer; if it keeps dying, give it up and leave its packets in the queue."""
        if worker.name in self._given_up:
            return
        self._outcome.restarted(worker.name, code)
        try:
            worker.restart()
        except ProcessKeepsDying as error:
            self._given_up.add(worker.name)
            self._outcome.problems.append(str(error))

    def kill_all(self) -> None:
        """Kill all processes."""
        # Producers first get the time to switch off the headset's camera.
        for worker in self.producers:
            worker.end()
        end_s = time.monotonic() + KILL_AFTER_S
        while time.monotonic() < end_s and self.busy_producers():
            time.sleep(0.05)
        for worker in self.all:
            worker.kill()


class DrainProgress:
    """Measures for how long the drainers have stored nothing; the end of a recording waits while they progress."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s, self._since_s = now_s, now_s()
        self._stored = -1

    def idle_s(self, states: dict[str, dict[str, Any]]) -> float:
        """Return for how many seconds nothing was stored, from the newest states of all processes."""
        facts = [stream for state in states.values() for stream in state.get("streams", {}).values()]
        stored = sum(int(stream.get("stored", 0)) for stream in facts)
        if stored != self._stored:
            self._stored, self._since_s = stored, self._now_s()
        return self._now_s() - self._since_s
