"""Deallocating a claim to help a pod, in the one order that works.

What may live here: the state machine ``ClaimDeallocation``, which sends the request that
``dra_core.claims.deallocation`` chose, and what has to be done before.

A control plane controller allocates for the node that is selected. Asked to deallocate
while one is still selected, it may do so and then, before the scheduler has had time to
select another, allocate again for the old node: for ever, with bad luck (k/k#120428). So
the selected node is removed first, and the request to deallocate is only handed out once
the API server has shown a context without one. The copy at hand is no proof of that, a
selection may have been published that it does not show yet; so the object is read first.

    deallocation = start_deallocation(record, chosen, policy)
    while deallocation.request is not None:
        status, body = send(deallocation.request)
        deallocation = deallocation.answered(status, body)
"""

from typing import Any

import attrs

from dra_core.api.request import ApiRequest, Cause, Next
from dra_core.claims.deallocation import Deallocation
from dra_core.scheduling.context import ContextPolicy, ContextRecord
from dra_core.scheduling.context_publishing import (
    ContextPublishing,
    NotPublished,
    NotPublishedReason,
    Published,
    start_publishing,
)


@attrs.frozen
class Deallocated:
    """The claim is deallocated, or its controller was asked to do it.

    ``body`` is the claim that the API server returned, decoded JSON: assume it.
    ``record`` has no node selected.
    """

    record: ContextRecord
    body: Any = attrs.field(repr=False)


@attrs.frozen
class NotDeallocated:
    """The claim was left alone, or the answer was not clear; the next attempt comes by.

    ``reason`` and ``status`` are those of the last answer. ``record`` is still to be
    published if it is dirty.
    """

    record: ContextRecord
    reason: NotPublishedReason
    status: int | None = None


DeallocationOutcome = Deallocated | NotDeallocated


@attrs.frozen
class ClaimDeallocation:
    """One state of the way. Send ``request`` and call ``answered``, until there is none.

    ``publishing`` is under way until the selected node is gone, ``None`` afterwards.
    """

    chosen: Deallocation
    record: ContextRecord
    publishing: ContextPublishing | None = None
    request: ApiRequest | None = None
    outcome: DeallocationOutcome | None = None

    def answered(self, status: int | None, body: Any = None) -> "ClaimDeallocation":
        """The next state, after the answer to ``request``.

        Raises what ``ContextPublishing.answered`` raises.
        """
        if self.request is None:
            raise ValueError("no answer is awaited")
        if self.publishing is not None:
            return self._after(self.publishing.answered(status, body))
        meaning = self.request.meaning(status)
        if meaning.then is Next.DONE and body is not None:
            return self._end(Deallocated(self.record, body))
        unclear = meaning.then is Next.DONE or Cause.MAY_HAVE_HAPPENED in meaning.causes
        reason = NotPublishedReason.UNCLEAR if unclear else NotPublishedReason.REFUSED
        return self._end(NotDeallocated(self.record, reason, status))

    def _after(self, publishing: ContextPublishing) -> "ClaimDeallocation":
        state = attrs.evolve(
            self, publishing=publishing, record=publishing.record, request=publishing.request
        )
        outcome = publishing.outcome
        if isinstance(outcome, NotPublished):
            return state._end(NotDeallocated(outcome.record, outcome.reason, outcome.status))
        if isinstance(outcome, Published):
            if outcome.record.existing.selected_node:
                # What came back is not what was sent.
                return state._end(NotDeallocated(outcome.record, NotPublishedReason.REFUSED))
            return attrs.evolve(state, publishing=None, request=self.chosen.request)
        return state

    def _end(self, outcome: DeallocationOutcome) -> "ClaimDeallocation":
        return attrs.evolve(self, publishing=None, request=None, outcome=outcome)


def start_deallocation(
    record: ContextRecord, chosen: Deallocation, policy: ContextPolicy
) -> ClaimDeallocation:
    """The first state for what ``choose_deallocation`` chose.

    Where a controller has to deallocate (``chosen.deselect_first``), ``record`` is published
    first, with no node selected and whatever else is recorded. A claim that a scheduler
    allocated needs no context.
    """
    if not chosen.deselect_first:
        return ClaimDeallocation(chosen, record, request=chosen.request)
    publishing = start_publishing(record.deselect_node(), policy, read_first=True)
    return ClaimDeallocation(chosen, publishing.record, publishing, publishing.request)
