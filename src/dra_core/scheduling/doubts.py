"""Reservations that may be gone: what the cache shows of them proves nothing.

What may live here: ``Doubts``, which remembers them between a pod's attempts.

A request that takes a pod's reservation off a claim may get no answer and be carried out
all the same. Until then the cache shows the reservation, or will show it, if the informer
lags behind so far that the pod's entry is still to come; no resourceVersion tells which. A
pod that took it for its own would be bound without one.
"""

from dra_core.scheduling.delivery import Delivery


class Doubts:
    """Pairs of a claim's and a pod's UID, kept until an answer tells more or the claim is gone.

    Safe to use from any thread; all calls are O(1).
    """

    def __init__(self, lock: Delivery) -> None:
        self._lock = lock
        self._pods: dict[str, set[str]] = {}

    def add(self, claim_uid: str, pod_uid: str) -> None:
        """The pod's reservation of the claim may be gone, or not."""
        with self._lock:
            self._pods.setdefault(claim_uid, set()).add(pod_uid)

    def has(self, claim_uid: str, pod_uid: str) -> bool:
        """Whether it may be gone although the cache shows it."""
        with self._lock:
            return pod_uid in self._pods.get(claim_uid, ())

    def end(self, claim_uid: str, pod_uid: str) -> None:
        """The API server has shown whether the claim is reserved for the pod."""
        with self._lock:
            pods = self._pods.get(claim_uid, set())
            pods.discard(pod_uid)
            if not pods:
                self.forget(claim_uid)

    def forget(self, claim_uid: str) -> None:
        """The claim is gone."""
        with self._lock:
            self._pods.pop(claim_uid, None)
