"""Decomposition on a real Ray cluster of two nodes: workers killed, stopped and lost with their node."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import metricdp as mdp
from decompositions import bounds_of, decomposition, instance, undisturbed
from restoring import as_it_was

ray = pytest.importorskip("ray", reason="needs the extra `ray`")
from metricdp.solvers.benders.ray import RayWorkers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of Ray, not of ours
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and a second node with one processor each."""
    from ray.cluster_utils import Cluster

    with as_it_was():
        made = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": QUICK},
        )
        made.add_node(num_cpus=1)
        yield made
        made.shutdown()


class Watched:
    """Workers on the cluster, and what happens to them after some rounds."""

    def __init__(self, cluster: Any, *, patience: float = 120.0) -> None:
        self.address, self.patience = cluster.address, patience
        self.made: list[RayWorkers] = []
        self.acts: dict[int, Any] = {}
        self.hit: list[int] = []

    def __call__(self, blocks: Any, states: Any) -> RayWorkers:
        self.made.append(RayWorkers(blocks, states=states, count=2, patience=self.patience, address=self.address))
        return self.made[-1]

    def progress(self, lower: float, upper: float, seconds: float, rounds: int) -> None:
        if rounds in self.acts:
            self.acts[rounds]()

    def strike(self, with_signal: signal.Signals) -> None:
        self.hit.append(self.made[0].pids()[0])
        os.kill(self.hit[-1], with_signal)


def same(seed: int, watched: Watched) -> None:
    """The bounds of all rounds are those of a run in this process."""
    lower, upper, history = undisturbed(seed)
    far = bounds_of(decomposition(seed), watched, watched.progress)
    assert far[:2] == pytest.approx((lower, upper), abs=1e-9)
    assert far[2] == pytest.approx(history, abs=1e-9)


def test_threads_processes_and_actors_build_the_same_certified_mechanism(cluster: Any) -> None:
    problem, _ = instance(1)
    made = {}
    for executor in (None, "processes", f"ray:{cluster.address}"):
        bounds: list[tuple[float, float]] = []
        mechanism = mdp.decomposed(
            problem,
            gap=1e-6,
            start="kernels",
            executor=executor,
            progress=lambda lower, upper, seconds, rounds, seen=bounds: seen.append((lower, upper)),
        )
        assert mdp.audit(mechanism).verdict == "holds"
        made[executor] = mechanism, bounds
    first, history = made.pop(None)
    assert len(history) > 10
    for mechanism, bounds in made.values():
        assert bounds == [pytest.approx(pair, abs=1e-9) for pair in history]
        assert mechanism.certificate.loss == pytest.approx(first.certificate.loss, abs=1e-9)
        assert mechanism.certificate.lower_bound == pytest.approx(first.certificate.lower_bound, abs=1e-9)
        assert mechanism.matrix == pytest.approx(first.matrix, abs=1e-9)


def test_actors_killed_twice_change_no_bound(cluster: Any) -> None:
    watched = Watched(cluster)
    watched.acts = dict.fromkeys((6, 10), lambda: watched.strike(signal.SIGKILL))
    same(1, watched)
    assert len(set(watched.hit)) == 2
    assert watched.made[0].restarts == 2


def test_a_slow_actor_is_waited_for_and_then_replaced(cluster: Any) -> None:
    watched = Watched(cluster)

    clock: list[float] = []

    def pause() -> None:
        # a second is within the patience: it is waited for
        clock.append(time.perf_counter())
        watched.strike(signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (watched.hit[-1], signal.SIGCONT)).start()

    def stop() -> None:
        assert watched.made[0].restarts == 0
        watched.made[0]._patience = 3.0
        watched.strike(signal.SIGSTOP)

    def calm() -> None:
        watched.made[0]._patience = 120.0

    watched.acts = {4: pause, 5: lambda: clock.append(time.perf_counter()), 8: stop, 9: calm}
    same(1, watched)
    assert clock[1] - clock[0] > 0.7
    assert watched.made[0].restarts >= 1
    with suppress(ProcessLookupError):
        os.kill(watched.hit[-1], signal.SIGKILL)


def test_a_lost_node_takes_its_workers_and_no_bound(cluster: Any) -> None:
    watched = Watched(cluster)
    lost = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)

    def home(actor: Any) -> str:
        return str(ray.get(actor.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id())))

    def lose() -> None:
        homes = [home(handle) for handle in watched.made[0]._handles]
        assert len(set(homes)) == 2  # one worker on each node
        worker = watched.made[0].pids()[homes.index(lost.node_id)]
        cluster.remove_node(lost, allow_graceful=False)
        with suppress(ProcessLookupError):  # a machine takes all its processes along; here they are a moment slower
            os.kill(worker, signal.SIGKILL)

    watched.acts = {5: lose}
    same(1, watched)
    assert watched.made[0].restarts >= 1
    assert len(cluster.list_all_nodes()) == 1
