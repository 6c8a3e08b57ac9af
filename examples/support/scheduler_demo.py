"""``make demo-scheduler``: the mini scheduler in a cluster of doubles, watched all the time.

What may live here: putting the parts together, waiting for the end, and the report.
"""

import argparse
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
from kubernetes import client as kube

from dra_core.api.core import Pod
from dra_core.api.request import ApiRequest, Target
from dra_core.api.wire import decode_pod, decode_resource_slice
from dra_core.testing.api_server import ApiServer
from dra_core.testing.faults import Fault, FaultyServer, random_faults
from examples.mini_scheduler import MiniScheduler
from examples.support import demo_cluster as demo
from examples.support.doubles import Controllers, Drivers, Kubelets, Loop
from examples.support.http_api_server import HttpApiServer
from examples.support.invariants import Invariants, claims_of
from examples.support.picture import device_lines

SCHEDULER = "mini-scheduler"
BAD_LUCK = (Fault.CONTENTION, Fault.CONFLICT, Fault.LOST_ANSWER, Fault.UNAVAILABLE, Fault.HIDDEN)
LETTERS = {"one-gpu": "g", "two-gpus": "2", "gpu-and-nic": "n", "shared": "s", "extended": "e"}


@attrs.define
class Demo:
    """One run, and what came of it. ``problems`` is empty if all is well."""

    server: ApiServer
    invariants: Invariants
    schedulers: list[MiniScheduler]
    seconds: float
    requests: Counter[str]
    problems: list[str]


def run(pods: int, nodes: int, *, seconds: float = 120.0, bad_luck: float = 0.02) -> Demo:
    """Schedule so many pods on so many nodes, in at most so many seconds.

    ``bad_luck`` is the part of the scheduler's requests to which something happens. When
    half of the pods are done the scheduler is replaced by a new one.
    """
    server = ApiServer()
    server.seed(*demo.cluster_objects(pods, nodes))
    invariants = Invariants(server)
    requests: Counter[str] = Counter()
    errors: list[Exception] = []

    def watched(send: Callable[[ApiRequest], Any]) -> Callable[[ApiRequest], Any]:
        def sending(request: ApiRequest) -> Any:
            answer = send(request)
            invariants.look()
            requests[f"{request.verb.value} {request.target.full_resource}"] += 1
            return answer

        return sending

    rates = {fault: bad_luck / len(BAD_LUCK) for fault in BAD_LUCK}
    line = FaultyServer(server, random_faults(random.Random(1), rates))
    begin = time.monotonic()
    with HttpApiServer(server, watched(line.send)) as shell:
        stop, own = threading.Event(), watched(server.send)
        drivers = Drivers(server, own, demo.node_names(nodes), demo.devices_per_node(pods, nodes))
        kubelets, controllers = Kubelets(server, own), Controllers(server, own)
        loops = [
            Loop(drivers.step, 0.02, shell.lock, stop),
            Loop(kubelets.step, 0.02, shell.lock, stop),
            Loop(controllers.step, 0.1, shell.lock, stop),
        ]
        for loop in loops:
            loop.start()
        schedulers = [start_scheduler(shell.url, errors.append)]
        for number in range(pods):
            with shell.lock:
                own(Target("", "v1", "pods", demo.NAMESPACE).create(demo.pod(number, SCHEDULER)))
        while time.monotonic() < begin + seconds and not any(loop.error for loop in loops):
            time.sleep(0.2)
            with shell.lock:
                left = len(unsettled(server))
            if not left:
                break
            if left < pods / 2 and len(schedulers) == 1:
                # What only the process knew is lost: the next one has to find its way.
                schedulers[0].stop()
                schedulers.append(start_scheduler(shell.url, errors.append))
        schedulers[-1].stop()
        stop.set()
        for loop in loops:
            loop.join()
        took = time.monotonic() - begin
    errors += [loop.error for loop in loops if loop.error]
    problems = [*invariants.violations, *unsettled(server), *map(repr, errors)]
    problems += Invariants(server).violations
    return Demo(server, invariants, schedulers, took, requests, problems)


def start_scheduler(url: str, report: Callable[[Exception], object]) -> MiniScheduler:
    """A scheduler that works on the API server at ``url``."""
    configuration = kube.Configuration(host=url)
    configuration.connection_pool_maxsize = 16
    scheduler = MiniScheduler(kube.ApiClient(configuration), SCHEDULER, report)
    scheduler.start()
    return scheduler


def unsettled(server: ApiServer) -> list[str]:
    """What has yet to happen: pods that are not bound, jobs that have not ended."""
    return [
        f"pod {pod.name} is {'running, but a job' if pod.node_name else 'not bound'}"
        for pod in pods_of(server)
        if not pod.finished and (not pod.node_name or "job" in pod.metadata.labels)
    ]


def pods_of(server: ApiServer) -> list[Pod]:
    """The pods as the server has them."""
    return [decode_pod(obj) for obj in server.objects("pods")]


def report(demo_run: Demo) -> str:
    """The summary, and the picture."""
    found = pods_of(demo_run.server)
    letters = {str(key): LETTERS[p.metadata.labels["app"]] for p in found for key in claims_of(p)}
    slices = [decode_resource_slice(obj) for obj in demo_run.server.objects("resourceslices")]
    bound = Counter(pod.metadata.labels["app"] for pod in found if pod.node_name)
    attempts = sum(scheduler.attempts for scheduler in demo_run.schedulers)
    lines = [
        *device_lines(slices, demo_run.invariants.claims, letters),
        "",
        "letters: " + ", ".join(f"{letter} {app}" for app, letter in LETTERS.items()),
        f"pods:    {len(found)}, bound " + ", ".join(f"{n} {app}" for app, n in bound.items())
        + f"; {sum(pod.finished for pod in found)} have ended",
        f"cycles:  {attempts} in {demo_run.seconds:.1f} s, by {len(demo_run.schedulers)} schedulers"
        " one after the other",
        "requests: " + ", ".join(f"{n} {what}" for what, n in demo_run.requests.most_common(6)),
        f"invariants: {len(demo_run.problems)} problems",
        *(f"  {problem}" for problem in demo_run.problems),
    ]  # fmt: skip
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command: 0 if everything was scheduled and every invariant held."""
    parser = argparse.ArgumentParser(prog="demo-scheduler", description=__doc__)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--bad-luck", type=float, default=0.02)
    given = parser.parse_args(arguments)
    result = run(given.pods, given.nodes, seconds=given.seconds, bad_luck=given.bad_luck)
    sys.stdout.write(report(result) + "\n")
    return 1 if result.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
