"""Publishing a recorded context: which request comes next, and what an answer leads to.

What may live here: the state machine ``ContextPublishing`` and nothing that sends. It makes
no call and reads no clock; every state is a frozen value. The payloads are those of
``context``.

    publishing = start_publishing(record, policy)
    while publishing.request is not None:
        status, body = send(publishing.request)
        publishing = publishing.answered(status, body)

The way is short: create, or change (an update, mostly), and after a conflict apply. Only
where that does not tell what to do is the object read and all decided again:

| sent            | 2xx       | 404    | 409                        | 422            |
| --------------- | --------- | ------ | -------------------------- | -------------- |
| create          | published | caller | read                       | caller         |
| update or patch | published | create | apply (read if not usable) | caller or read |
| apply           | published | caller | read                       | read           |
| read            | decide    | create | caller                     | caller         |

*Caller*: the outcome says what the API server answered, and the changes stay recorded, so
that publishing them again later converges, also after a write that may have happened. A 422
is read only for requests that name the UID, to tell another incarnation of the object from
a refusal. Every loop passes a read, and at most five are made.
"""

from enum import Enum, StrEnum
from typing import Any

import attrs

from dra_core.api.request import ApiRequest, Cause, Next
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.wire import decode_pod_scheduling_context
from dra_core.scheduling.context import (
    ContextPolicy,
    ContextRecord,
    apply_context,
    change_context,
    create_context,
    get_context,
)
from dra_core.scheduling.errors import ContextNotOwnedError

MAX_ROUNDS = 5
"""Reads of the object before publishing gives way to the next attempt."""


class ContextPhase(Enum):
    """Which request waits for its answer."""

    CREATE = "create"
    CHANGE = "update or merge patch"
    APPLY = "server-side apply"
    READ = "read"
    OVER = "over"


class NotPublishedReason(StrEnum):
    """Why the recorded changes are not published."""

    OTHER_OWNER = "the object of that name is not controlled by this pod"
    TOO_MANY_ROUNDS = "the object kept changing"
    REFUSED = "the API server refused the request"
    UNCLEAR = "there was no clear answer; the write may have happened"


@attrs.frozen
class Published:
    """The object says what was recorded, and ``record`` knows it with nothing recorded.

    ``context`` is what the API server returned last, ``None`` if nothing had to be sent.
    ``sent`` is the record that it was made of: where more was recorded meanwhile, go on with
    ``newer.published(context, sent)``.
    """

    record: ContextRecord
    sent: ContextRecord
    context: PodSchedulingContext | None = None


@attrs.frozen
class NotPublished:
    """The changes are still recorded in ``record``, which knows the newest copy seen.

    ``status`` is the HTTP status of the last answer, ``None`` if there was none.
    """

    record: ContextRecord
    reason: NotPublishedReason
    status: int | None = None


PublishingOutcome = Published | NotPublished


@attrs.frozen
class ContextPublishing:
    """One state of the way. Send ``request`` and call ``answered``, until there is none.

    ``rounds`` counts reads, ``refused_uid`` is set while a read has to tell whether a
    refusal was meant for another incarnation.
    """

    policy: ContextPolicy
    record: ContextRecord
    phase: ContextPhase = ContextPhase.OVER
    request: ApiRequest | None = None
    outcome: PublishingOutcome | None = None
    rounds: int = 0
    returned: PodSchedulingContext | None = None
    refused_uid: str | None = None

    def answered(self, status: int | None, body: Any = None) -> "ContextPublishing":
        """The next state, after the answer to ``request``.

        ``status`` is the HTTP status, ``None`` for no answer; ``body`` the decoded JSON of a
        success. Raises ``ValueError`` if no answer was awaited, and
        ``MalformedObjectError`` for a body that is no such object.
        """
        if self.request is None:
            raise ValueError("no answer is awaited")
        meaning = self.request.meaning(status)
        if meaning.then is Next.DONE:
            return self._succeeded(status, body)
        if status == 404:
            return self._not_found(status)
        if status == 409 and self.phase is not ContextPhase.READ:
            return self._conflict(status)
        if Cause.OTHER_INCARNATION in meaning.causes:
            known = self.record.known
            return self._read(status, "" if known is None else known.metadata.uid)
        unclear = Cause.MAY_HAVE_HAPPENED in meaning.causes
        return self._fail(
            NotPublishedReason.UNCLEAR if unclear else NotPublishedReason.REFUSED, status
        )

    def _succeeded(self, status: int | None, body: Any) -> "ContextPublishing":
        if body is None:
            # As good as no answer: what the object says now is not known.
            if self.phase is ContextPhase.READ:
                return self._fail(NotPublishedReason.UNCLEAR, status)
            return self._read(status)
        context = decode_pod_scheduling_context(body)
        if self.phase is ContextPhase.READ:
            return self._loaded(context, status)
        return self._done(context, status)

    def _not_found(self, status: int | None) -> "ContextPublishing":
        gone = self.record.load(None)
        if self.phase is ContextPhase.READ and not gone.dirty:
            return attrs.evolve(self, record=gone, refused_uid=None)._decide()
        if self.phase in (ContextPhase.READ, ContextPhase.CHANGE):
            # The copy stays known, so that the new object says all that the old one was to.
            state = attrs.evolve(self, refused_uid=None)
            return state._send(ContextPhase.CREATE, create_context(self.record, self.policy))
        return self._fail(NotPublishedReason.REFUSED, status)

    def _conflict(self, status: int | None) -> "ContextPublishing":
        if self.phase is ContextPhase.CHANGE and self.policy.can_apply:
            return self._send(ContextPhase.APPLY, apply_context(self.record, self.policy))
        return self._read(status)

    def _read(self, status: int | None, refused_uid: str | None = None) -> "ContextPublishing":
        if self.rounds >= MAX_ROUNDS:
            return self._fail(NotPublishedReason.TOO_MANY_ROUNDS, status)
        state = attrs.evolve(self, rounds=self.rounds + 1, refused_uid=refused_uid)
        return state._send(ContextPhase.READ, get_context(self.record, self.policy))

    def _loaded(self, context: PodSchedulingContext, status: int | None) -> "ContextPublishing":
        try:
            record = self.record.load(context)
        except ContextNotOwnedError:
            return self._fail(NotPublishedReason.OTHER_OWNER, status)
        state = attrs.evolve(self, record=record, returned=context, refused_uid=None)
        if self.refused_uid == context.metadata.uid:
            return state._fail(NotPublishedReason.REFUSED, 422)
        return state._decide()

    def _decide(self) -> "ContextPublishing":
        """What to do about the object as the newest copy shows it."""
        record = self.record
        if not record.dirty:
            return self._done(self.returned)
        if record.known is None:
            return self._send(ContextPhase.CREATE, create_context(record, self.policy))
        return self._send(ContextPhase.CHANGE, change_context(record, self.policy))

    def _send(self, phase: ContextPhase, request: ApiRequest) -> "ContextPublishing":
        return attrs.evolve(self, phase=phase, request=request)

    def _done(
        self, context: PodSchedulingContext | None, status: int | None = None
    ) -> "ContextPublishing":
        sent = self.record
        try:
            record = sent.published(sent.known if context is None else context, sent)
        except ContextNotOwnedError:
            # Somebody took the owner away while the request was under way.
            return self._fail(NotPublishedReason.OTHER_OWNER, status)
        return self._end(record, Published(record, sent, context))

    def _fail(self, reason: NotPublishedReason, status: int | None) -> "ContextPublishing":
        return self._end(self.record, NotPublished(self.record, reason, status))

    def _end(self, record: ContextRecord, outcome: PublishingOutcome) -> "ContextPublishing":
        return attrs.evolve(
            self, record=record, phase=ContextPhase.OVER, request=None, outcome=outcome
        )


def start_publishing(
    record: ContextRecord, policy: ContextPolicy, *, read_first: bool = False
) -> ContextPublishing:
    """The first state. There may be nothing to send.

    ``read_first``: do not trust the copy at hand, read the object before anything is decided.
    Raises ``IncompleteContextError`` if the copy lacks UID or resourceVersion, and
    ``ReadInOtherVersionError`` if an update is wanted of a copy read in another version.
    """
    state = ContextPublishing(policy, record)
    if read_first:
        return state._send(ContextPhase.READ, get_context(record, policy))
    return state._decide()
