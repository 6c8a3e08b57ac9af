"""Claims, checked and laid out for the search, as far as no node is needed.

A ``Plan`` is made once for the claims of a pod and used for every node. It holds the
requests in search order and the findings of the checks that come before any search.
The first finding ends the checks, and some findings need a node (what "all devices"
is), so a fault of the claims is kept in the plan, behind the checks that come before
it, and raised by the call for a node.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from dra_core.api.objects import (
    ALLOCATION_MODE_ALL,
    ALLOCATION_MODE_EXACT_COUNT,
    MAX_DEVICES_PER_CLAIM,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from dra_core.errors import (
    AllocationError,
    DeviceClassNotFoundError,
    FeatureDisabledError,
    InvalidCountError,
    MissingClassNameError,
    TooManyDevicesError,
    UnknownAllocationModeError,
    UnknownConstraintError,
    UnknownRequestError,
    UnknownSelectorError,
)
from dra_core.features import Features
from dra_core.values.quantity import Quantity


class SelectorUse(NamedTuple):
    """A selector and its position in the class ``device_class`` ("": in the request)."""

    device_class: str
    position: int
    expression: str


@attrs.define(eq=False)
class Alternative:
    """One way to satisfy a request: ``exactly``, or one entry of ``firstAvailable``.

    ``name`` is the request's, ``main/sub`` for a subrequest. ``constraints`` are
    places in ``Plan.constraints`` that apply. ``match_key`` are the expressions of all
    selectors, ``static_key`` everything of the request that a device is checked against.
    Compared by identity: it serves as a key. (Nobody changes it; a frozen class takes twice
    as long to make, and a plan makes one of these for every request.)
    """

    claim: int
    name: str
    every: bool
    count: int
    admin: bool
    device_class: DeviceClass
    selectors: tuple[SelectorUse, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]
    constraints: tuple[int, ...]
    match_key: tuple[str, ...]
    static_key: object

    @property
    def can_fail(self) -> bool:
        """Whether reaching this may end the call with an error that no mask shows."""
        return self.every and bool(self.constraints)


@attrs.define(eq=False)
class Request:
    """A request in search order. ``claim`` is the place of its claim."""

    claim: int
    name: str
    alternatives: tuple[Alternative, ...]


class Constraint(NamedTuple):
    """A constraint of claim ``claim``, ``index`` its place there."""

    claim: int
    position: int
    attribute: str
    distinct: bool


class ExpandAll(NamedTuple):
    """Check for a node: what are all devices of this alternative?"""

    alternative: Alternative


class CheckLimit(NamedTuple):
    """Check for a node: may the claim need no more devices than a claim may have?"""

    claim: int


Check = ExpandAll | CheckLimit | AllocationError


@attrs.frozen(eq=False)
class Plan:
    """What ``Allocator.plan`` returns; give it to ``Allocator.allocate`` for each node.

    ``claims`` as given; ``checks`` in order, at most one error, the last; ``configured``
    says for each claim whether it or a class it may use has configuration.
    """

    claims: tuple[ResourceClaim, ...]
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]
    checks: tuple[Check, ...]
    configured: tuple[bool, ...]

    @property
    def error(self) -> AllocationError | None:
        """The fault of the claims, if there is one. (A check for a node may come first.)"""
        last = self.checks[-1] if self.checks else None
        return last if isinstance(last, AllocationError) else None


def claim_label(claim: ResourceClaim) -> str:
    """ "namespace/name", as errors name a claim."""
    return str(claim.metadata.key)


class Planner:
    """Makes plans for one set of classes and features.

    ``keys`` interns what devices are checked against, so that equal requests of
    different claims find each other's results in a node's view.
    """

    def __init__(self, classes: Mapping[str, DeviceClass], features: Features) -> None:
        self._classes = classes
        self._features = features
        self._keys: dict[object, object] = {}
        self._selectors: dict[str, tuple[SelectorUse, ...]] = {}
        """Of each class, in order."""

    def plan(self, claims: Sequence[ResourceClaim]) -> Plan:
        """Lay out the claims. Cost: linear in their requests and constraints."""
        requests: list[Request] = []
        constraints: list[Constraint] = []
        checks: list[Check] = []
        for place, claim in enumerate(claims):
            applying = _applying(claim, len(constraints))
            try:
                mine: list[Request] = []
                for request in claim.devices.requests:
                    planned = self._request(place, claim, request, applying, checks)
                    mine.append(planned)
                # Before the constraints: the limit looks at these, and comes before an
                # error in those.
                requests += mine
                _check_limit(place, claim, mine, checks)
                constraints += _plan_constraints(place, claim)
            except AllocationError as error:
                checks.append(error)
                break
        configured = [bool(claim.devices.config) for claim in claims]
        for planned in requests:
            if any(alternative.device_class.config for alternative in planned.alternatives):
                configured[planned.claim] = True
        return Plan(
            tuple(claims), tuple(requests), tuple(constraints), tuple(checks), tuple(configured)
        )

    def _request(
        self,
        place: int,
        claim: ResourceClaim,
        request: DeviceRequest,
        applying: Sequence[tuple[int, frozenset[str]]],
        checks: list[Check],
    ) -> Request:
        label = claim_label(claim)
        details: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]]
        if request.first_available:
            if not self._features.prioritized_list:
                name, field = request.name, "firstAvailable"
                raise FeatureDisabledError(label, name, "PrioritizedList", field)
            details = [(f"{request.name}/{sub.name}", sub) for sub in request.first_available]
        elif request.exactly is not None:
            details = [(request.name, request.exactly)]
        else:
            raise UnknownRequestError(label, request.name)
        alternatives: list[Alternative] = []
        for name, detail in details:
            constraints = tuple(
                [
                    number
                    for number, about in applying
                    if not about or request.name in about or name in about
                ]
            )
            alternative = self._alternative(place, label, name, detail, constraints)
            alternatives.append(alternative)
            if alternative.every:
                checks.append(ExpandAll(alternative))
        return Request(place, request.name, tuple(alternatives))

    def _alternative(
        self,
        place: int,
        label: str,
        name: str,
        detail: ExactDeviceRequest | DeviceSubRequest,
        constraints: tuple[int, ...],
    ) -> Alternative:
        admin = detail.admin_access if isinstance(detail, ExactDeviceRequest) else None
        if detail.capacity is not None and not self._features.consumable_capacity:
            raise FeatureDisabledError(label, name, "ConsumableCapacity", "capacity")
        if admin is not None and not self._features.admin_access:
            raise FeatureDisabledError(label, name, "AdminAccess", "adminAccess")
        own: tuple[SelectorUse, ...] = ()
        if detail.selectors:
            own = tuple(_selector_uses(label, name, "", detail.selectors))
        if not detail.device_class_name:
            raise MissingClassNameError(label, name)
        device_class = self._classes.get(detail.device_class_name)
        if device_class is None:
            raise DeviceClassNotFoundError(label, name, detail.device_class_name)
        of_class = self._selectors.get(device_class.name)
        if of_class is None:
            of_class = tuple(_selector_uses(label, name, device_class.name, device_class.selectors))
            self._selectors[device_class.name] = of_class
        selectors = of_class + own if own else of_class
        every, count = _amount(label, name, detail)
        capacity = detail.capacity.requests if detail.capacity is not None else {}
        match_key = tuple([use.expression for use in selectors])
        # Equal amounts may be written differently, and are consumed as they are written.
        amounts = tuple([(name, amount.nano, amount.format) for name, amount in capacity.items()])
        static = (match_key, detail.tolerations, amounts)
        return Alternative(
            place,
            name,
            every,
            count,
            bool(admin),
            device_class,
            selectors,
            detail.tolerations,
            capacity,
            constraints,
            match_key,
            self._interned(static),
        )

    def _interned(self, key: object) -> object:
        """One object for all equal keys: it hashes by identity, which is ten times faster."""
        known = self._keys.get(key)
        if known is None:
            if len(self._keys) >= _MAX_KEYS:
                self._keys = {}
            known = self._keys[key] = StaticKey()
        return known


_MAX_KEYS = 4096


class StaticKey:
    """Stands for everything of a request that a device is checked against."""

    __slots__ = ()


def _selector_uses(
    label: str, name: str, device_class: str, selectors: Sequence[DeviceSelector]
) -> Iterator[SelectorUse]:
    for place, selector in enumerate(selectors):
        if selector.cel is None:
            raise UnknownSelectorError(label, name, device_class, place)
        yield SelectorUse(device_class, place, selector.cel)


def _amount(
    label: str, name: str, detail: ExactDeviceRequest | DeviceSubRequest
) -> tuple[bool, int]:
    """(mode All?, exact count). The defaults are those of hand-written objects."""
    if detail.allocation_mode == ALLOCATION_MODE_ALL:
        return True, 0
    if detail.allocation_mode not in ("", ALLOCATION_MODE_EXACT_COUNT):
        raise UnknownAllocationModeError(label, name, detail.allocation_mode)
    count = 1 if detail.count is None else detail.count
    if count < 0:
        raise InvalidCountError(label, name, count)
    return False, count


def _applying(claim: ResourceClaim, first: int) -> list[tuple[int, frozenset[str]]]:
    """The constraints of a claim: number, and the requests they are about (none: all)."""
    numbered = enumerate(claim.devices.constraints, first)
    return [(number, frozenset(constraint.requests)) for number, constraint in numbered]


def _plan_constraints(place: int, claim: ResourceClaim) -> Iterator[Constraint]:
    for index, constraint in enumerate(claim.devices.constraints):
        if constraint.match_attribute is not None:
            yield Constraint(place, index, constraint.match_attribute, False)
        elif constraint.distinct_attribute is not None:
            yield Constraint(place, index, constraint.distinct_attribute, True)
        else:
            raise UnknownConstraintError(claim_label(claim), "", index)


def _check_limit(
    place: int, claim: ResourceClaim, requests: Sequence[Request], checks: list[Check]
) -> None:
    if any(alternative.every for request in requests for alternative in request.alternatives):
        checks.append(CheckLimit(place))
        return
    needed = sum(min(a.count for a in request.alternatives) for request in requests)
    if needed > MAX_DEVICES_PER_CLAIM:
        raise TooManyDevicesError(claim_label(claim), "", needed, MAX_DEVICES_PER_CLAIM)
