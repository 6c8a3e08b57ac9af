"""What a pod's attempts have left in flight, once the pod is gone.

What may live here: ``PodRelease``, the requests that find out what was written.

An attempt that does not know whether its write happened leaves the devices taken, and the
pod's next attempt finds out. If the pod was deleted, or bound by somebody else, there is
none. To give everything back unread would be wrong: the claim may be allocated by now,
although the informer does not show it yet, and its devices would be given away twice.

    release = release_pod(pod, tracker, kinds)
    while release.request is not None:
        release.answered(*send(release.request))
"""

from collections.abc import Sequence
from typing import Any

from dra_core.api.core import Pod
from dra_core.api.request import ApiRequest
from dra_core.claims.reservation import pod_reference
from dra_core.scheduling.cycle_claims import HeldClaim, kind_of
from dra_core.scheduling.cycle_kinds import ClaimKind
from dra_core.scheduling.cycle_requests import ApiAnswer, Steps, Surroundings, read_uncertain
from dra_core.scheduling.cycle_verdicts import Trouble
from dra_core.scheduling.extended_claim import is_in_memory
from dra_core.scheduling.in_flight import ClaimTracker, InFlight


class PodRelease:
    """Gives back what a pod has in flight, claim by claim. Send ``request`` until there is none.

    A claim that is gone or not allocated gives its devices back; one that is allocated has
    them from now on. Made by ``release_pod``. Not for threads.
    """

    def __init__(self, pod: Pod, tracker: ClaimTracker, kinds: Sequence[ClaimKind]) -> None:
        self._pod = pod
        self._tracker = tracker
        self._troubles: list[Trouble] = []
        around = Surroundings(pod, tracker, self._troubles.append)
        self._steps = self._read_all(around, tuple(kinds))
        self._request: ApiRequest | None = next(self._steps, None)

    @property
    def request(self) -> ApiRequest | None:
        """The request that waits for its answer; ``None`` at the end."""
        return self._request

    @property
    def left(self) -> tuple[InFlight, ...]:
        """What the pod still has in flight.

        At the end: where there was no clear answer, or no kind for the claim. Try again later.
        """
        uid = self._pod.metadata.uid
        return tuple(entry for entry in self._tracker.in_flight() if uid in entry.users)

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What went wrong, for the log."""
        return tuple(self._troubles)

    def answered(self, status: int | None, body: Any = None) -> ApiRequest | None:
        """Go on after an answer to ``request``; the next request, ``None`` if that was the last.

        ``status`` is the HTTP status, ``None`` for no answer; ``body`` the decoded JSON of a
        success. Raises ``ValueError`` if no answer was awaited.
        """
        if self._request is None:
            raise ValueError("no answer is awaited")
        try:
            self._request = self._steps.send(ApiAnswer(status, body))
        except StopIteration:
            self._request = None
        return self._request

    def _read_all(self, around: Surroundings, kinds: tuple[ClaimKind, ...]) -> Steps[None]:
        for entry in self.left:
            if is_in_memory(entry.claim):
                # Not written without being created first, and under no name to ask for.
                around.tracker.release(entry.uid, self._pod.metadata.uid)
                continue
            kind = kind_of(entry.claim, kinds)
            if kind is not None:
                held = HeldClaim(
                    ("",), kind, entry.claim, pod_reference(self._pod), entry.allocation
                )
                yield from read_uncertain(around, held, last=True)


def release_pod(pod: Pod, tracker: ClaimTracker, kinds: Sequence[ClaimKind]) -> PodRelease:
    """A pod is gone: find out what its attempts have written, and give back the rest.

    Call it when the pod was deleted, or is bound by somebody else, and no cycle of it is on
    the way. Also when it goes to sleep (``Stopped`` without ``retry``): a claim that is in the
    way may have ended its last attempt before that could find out by itself, and what it has
    left keeps others out meanwhile.

    ``kinds`` are those of its cycles. One request per claim that it left in flight, mostly
    none at all.
    """
    return PodRelease(pod, tracker, kinds)
