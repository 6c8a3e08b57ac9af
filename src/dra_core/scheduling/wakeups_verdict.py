"""What an event means for a pod that sleeps: the answer, with its reason.

What may live here: the answers of ``wakeups``, as frozen values. The words of the reasons
are for people and no API; the members are for programs.
"""

from enum import StrEnum

import attrs


class Queueing(StrEnum):
    """What to do with the pod."""

    SKIP = "skip"
    """The event changes nothing for it."""
    QUEUE = "queue"
    """Try again; a backoff from failed attempts may still delay it."""
    QUEUE_AT_ONCE = "queue at once"
    """Try again without backoff: it waited for this very information."""


class WakeReason(StrEnum):
    """Why. A comment where the members of several rules could be confused."""

    # Skip.
    CLAIMS_UNRESOLVED = "the pod's claims are not there, or not the pod's"
    OTHER_CLAIM = "not a claim of the pod"
    OTHER_POD = "not this pod"
    SAME_STATUS = "nothing the scheduler waits for has changed in the status"
    NOTHING_PENDING = "no claim of the pod needs devices from the scheduler"
    OTHER_CLASS = "no pending request of the pod names the class"
    CANNOT_HELP = "only fewer devices, or more taints"
    UNCHANGED = "nothing has changed that the scheduler reads"
    GONE = "what is gone cannot help"
    REPORT_INCOMPLETE = "a driver has yet to report on a pending claim"
    OTHER_PARAMETERS = "no claim of the pod uses the parameters"

    # Queue.
    DEVICES_FREED = "devices became free"
    CLAIM_ADDED = "a claim of the pod was added"
    CLAIM_CHANGED = "the status of a claim of the pod has changed"
    OWNER_CHANGED = "a claim of the pod has another owner"
    POD_UPDATED = "the pod was updated, and all its claims are there"
    CLASS_CHANGED = "a class that the pod asks for has changed"
    SUPPLY_CHANGED = "there may be other devices"
    NODE_CHANGED = "a node is new, or has changed"
    CONTEXT_CHANGED = "the status of the negotiation has changed"
    PARAMETERS_CHANGED = "parameters that a claim of the pod uses have changed"

    # Queue at once.
    REPORTED = "a driver has reported on nodes"
    SELECTED_UNSUITABLE = "the selected node does not suit a driver"


@attrs.frozen
class WakeUp:
    """The answer: what to do with the pod, and why.

    ``subject`` is what it is about: "namespace/name" or name of an object, or a node; "" if
    that is the object of the event.
    """

    queueing: Queueing
    reason: WakeReason
    subject: str = ""

    @property
    def wakes(self) -> bool:
        """Whether the pod is to be tried again."""
        return self.queueing is not Queueing.SKIP


def skip(reason: WakeReason, subject: str = "") -> WakeUp:
    """The pod goes on sleeping."""
    return WakeUp(Queueing.SKIP, reason, subject)


def queue(reason: WakeReason, subject: str = "") -> WakeUp:
    """The pod is tried again."""
    return WakeUp(Queueing.QUEUE, reason, subject)


def queue_at_once(reason: WakeReason, subject: str = "") -> WakeUp:
    """The pod is tried again without backoff."""
    return WakeUp(Queueing.QUEUE_AT_ONCE, reason, subject)
