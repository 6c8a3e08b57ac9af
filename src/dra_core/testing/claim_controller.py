"""Doubles of the controllers that look after claims in kube-controller-manager.

What may live here: ``ClaimController``, which generates claims from templates and
releases those that nobody needs any more, and ``garbage``, what the garbage collector
would delete. The rules are ``dra_core.claims``'; here is only when they are used.

The controller acts one request at a time, on what it saw when it last looked, so that
anything can happen in between: that is where the races of claims are.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any

from dra_core.api.core import Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import FINALIZER, ResourceClaim, ResourceClaimTemplate
from dra_core.api.request import ApiRequest, Target
from dra_core.api.wire import decode_pod, decode_resource_claim, decode_resource_claim_template
from dra_core.api.wire_versions import VERSIONS, split_api_version
from dra_core.claims.generation import GenerationPlan, plan_claims
from dra_core.claims.releasing import Absent, delete_generated, finish_release, release_claim
from dra_core.testing.api_server import ApiServer

Json = dict[str, Any]

Sender = Callable[[ApiRequest], tuple[int | None, Any]]
"""Sends a request: HTTP status (``None``: no answer) and body."""

Work = Generator[ApiRequest, tuple[int | None, Any], None]
"""Something to do in several requests: yields each, is sent its answer."""


class ClaimController:
    """Generates and releases claims, as the real one does.

    ``send`` is used instead of the server's own, to give it bad luck. ``version`` is the
    API version of the claims that it generates. Claims of v1alpha2 are left alone. Nothing
    is tried again: what failed is met again at the next look.
    """

    def __init__(
        self,
        server: ApiServer,
        send: Sender | None = None,
        *,
        version: str = "v1",
        finalizer: str = FINALIZER,
    ) -> None:
        self._server = server
        self._send: Sender = send or server.send
        self._version, self._finalizer = version, finalizer
        self._work: list[tuple[Work, ApiRequest]] = []

    @property
    def busy(self) -> int:
        """How much was begun, or found at the last look, and is not done."""
        return len(self._work)

    def look(self) -> None:
        """See what there is now, and find what has to be done about it.

        What was begun before is given up, as by a controller that restarts.
        """
        self._work.clear()
        pods = {pod.metadata.key: pod for pod in map(decode_pod, self._server.objects("pods"))}
        claims = [read_claim(obj) for obj in self._server.objects("resourceclaims") if is_read(obj)]
        for claim in claims:
            version = api_version(claim)

            def lookup(key: ObjectKey) -> Pod | Absent:
                return pods.get(key, Absent.GONE)

            release = release_claim(claim, lookup, version=version, finalizer=self._finalizer)
            if release is not None:
                self._begin(self._release(release, version))
            elif (delete := delete_generated(claim, lookup, version=version)) is not None:
                self._begin(_one(delete))
            elif claim.allocation is None and claim.metadata.deletion_timestamp:
                self._begin(self._unprotect(claim, version))
        for pod in pods.values():
            plan = plan_claims(pod, claims, self._template, version=self._version)
            self._begin(_generate(plan))

    def step(self, which: int = 0) -> bool:
        """Send one request; whether there was one.

        ``which`` chooses among the things to do (modulo their number), by default the
        first. Each takes its requests in order.
        """
        if not self._work:
            return False
        work, request = self._work.pop(which % len(self._work))
        answer = self._send(request)
        try:
            following = work.send(answer)
        except StopIteration:
            return True
        self._work.insert(0, (work, following))
        return True

    def settle(self, rounds: int = 100) -> None:
        """Look and act until nothing is left to do. Raises RuntimeError after ``rounds``."""
        for _ in range(rounds):
            self.look()
            if not self.busy:
                return
            while self.step():
                pass
        raise RuntimeError(f"the claim controller still has something to do after {rounds} rounds")

    def _begin(self, work: Work) -> None:
        request = next(work, None)
        if request is not None:
            self._work.append((work, request))

    def _release(self, release: ApiRequest, version: str) -> Work:
        """The two updates; between them, a scheduler may be faster."""
        status, body = yield release
        if status == 200:
            yield from self._unprotect(decode_resource_claim(body, version), version)

    def _unprotect(self, claim: ResourceClaim, version: str) -> Work:
        request = finish_release(claim, version=version, finalizer=self._finalizer)
        if request is not None:
            yield request

    def _template(self, key: ObjectKey) -> ResourceClaimTemplate | None:
        found = self._server.find("resourceclaimtemplates", *key)
        if found is None:
            return None
        return decode_resource_claim_template(found, split_api_version(found["apiVersion"])[1])


def _one(request: ApiRequest) -> Work:
    yield request


def _generate(plan: GenerationPlan) -> Work:
    created: dict[str, str] = {}
    for new in plan.create:
        status, body = yield new.request
        if status == 201:
            created[new.pod_claim] = body["metadata"]["name"]
    request = plan.status_request(created)
    if request is not None:
        yield request


def is_read(obj: Mapping[str, Any]) -> bool:
    """Whether a claim is in a version that ``dra_core.api`` reads."""
    return split_api_version(obj["apiVersion"])[1] in VERSIONS


def read_claim(obj: Mapping[str, Any]) -> ResourceClaim:
    """A claim decoded in the version that it says."""
    return decode_resource_claim(obj, split_api_version(obj["apiVersion"])[1])


def api_version(claim: ResourceClaim) -> str:
    """The version that a claim was read in."""
    return split_api_version((claim.raw or {}).get("apiVersion") or "v1")[1]


def garbage(server: ApiServer) -> list[ApiRequest]:
    """The deletions that the garbage collector would make: all owners are gone."""
    objects = server.objects()
    alive = {obj["metadata"]["uid"] for obj in objects}
    resources = {(kind.group, kind.kind): kind.resource for kind in server.kinds}
    requests = []
    for obj in objects:
        meta = obj["metadata"]
        owners = meta.get("ownerReferences") or []
        if not owners or any(owner["uid"] in alive for owner in owners):
            continue
        if meta.get("deletionTimestamp"):
            continue
        group, version = split_api_version(obj["apiVersion"])
        resource = resources[(group, obj["kind"])]
        target = Target(group, version, resource, meta.get("namespace", ""), meta["name"])
        requests.append(target.delete(uid=meta["uid"]))
    return requests
