"""What the API server refuses of the objects that it is to store.

What may live here: rules from the old and the new state of an object to what is wrong,
each of those that payloads and schedulers rely on. It is not all of the API's
validation (``dra_core.api.validation`` is), because tests want small objects.

An allocation without the finalizer is accepted, as by the real server. That this never
happens is an invariant of schedulers, which tests check after every step.

Source: pkg/apis/resource/validation, staging/src/k8s.io/apimachinery/pkg/api/validation.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from dra_core.testing.api_kinds import Kind
from dra_core.testing.patching import same_json

Json = Mapping[str, Any]

MAX_NODES = 128
"""Entries of ``potentialNodes`` and ``unsuitableNodes``."""


@attrs.frozen
class Violation:
    """A rule that an object breaks: the path of the field and what is wrong."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


Rule = Callable[[Kind, Json, Json], Iterator[Violation]]
"""From kind, old and new state to what is wrong. The old one is ``{}`` at creation."""


def violations(kind: Kind, old: Json, new: Json) -> list[Violation]:
    """What is wrong with storing ``new`` over ``old``, in the order of the rules."""
    rules = (*_EVERY_KIND, *_RULES.get(kind.kind, ()))
    return [found for rule in rules for found in rule(kind, old, new)]


# Every kind


def _metadata(_kind: Kind, old: Json, new: Json) -> Iterator[Violation]:
    before, after = old.get("metadata", {}), new["metadata"]
    for name in ("uid", "name", "namespace", "creationTimestamp"):
        if old and before.get(name) != after.get(name):
            yield Violation(f"metadata.{name}", "cannot be changed")
    if not after.get("name"):
        yield Violation("metadata.name", "a name or generateName is required")
    finalizers = after.get("finalizers") or []
    if before.get("deletionTimestamp"):
        for finalizer in finalizers:
            if finalizer not in (before.get("finalizers") or []):
                yield Violation(
                    "metadata.finalizers",
                    f"{finalizer} cannot be added to an object that is being deleted",
                )
    yield from _unique("metadata.ownerReferences", after.get("ownerReferences"), "uid")


def _immutable_spec(kind: Kind, old: Json, new: Json) -> Iterator[Violation]:
    if kind.immutable_spec and old and not same_json(old.get("spec"), new.get("spec")):
        yield Violation("spec", "cannot be changed")


def _unique(path: str, items: Any, key: str) -> Iterator[Violation]:
    seen: list[Any] = []
    for item in items or []:
        if item.get(key) in seen:
            yield Violation(path, f"{item.get(key)!r} is there twice")
        seen.append(item.get(key))


# ResourceClaim


def _reservations(kind: Kind, old: Json, new: Json) -> Iterator[Violation]:
    path = "status.reservedFor"
    status = new.get("status") or {}
    entries = status.get("reservedFor") or []
    if len(entries) > kind.max_consumers:
        yield Violation(path, f"has {len(entries)} entries, at most {kind.max_consumers} are fine")
    yield from _unique(path, entries, "uid")
    for entry in entries:
        for member in ("resource", "name", "uid"):
            if not entry.get(member):
                yield Violation(f"{path}.{member}", "is required")
    allocation = status.get("allocation")
    if entries and allocation is None:
        yield Violation(path, "needs an allocation")
    if len(entries) > 1 and allocation is not None and _is_exclusive(kind, allocation):
        yield Violation(path, "the allocation cannot be shared")
    yield from _late_reservations(old, new, entries)


def _is_exclusive(kind: Kind, allocation: Json) -> bool:
    return "v1alpha2" in kind.versions and not allocation.get("shareable")


def _late_reservations(old: Json, new: Json, entries: list[Json]) -> Iterator[Violation]:
    """Nobody can be added to what is on its way out."""
    status = new.get("status") or {}
    if not (new["metadata"].get("deletionTimestamp") or status.get("deallocationRequested")):
        return
    before = [entry.get("uid") for entry in (old.get("status") or {}).get("reservedFor") or []]
    for entry in entries:
        if entry.get("uid") not in before:
            yield Violation(
                "status.reservedFor", "nobody can be added while the claim is to be deallocated"
            )


def _allocation(_kind: Kind, old: Json, new: Json) -> Iterator[Violation]:
    """Never modified in place; only the time of an allocation without one can be noted."""
    before = (old.get("status") or {}).get("allocation")
    after = (new.get("status") or {}).get("allocation")
    if before is None or after is None:
        return
    if "allocationTimestamp" not in before:
        after = {name: value for name, value in after.items() if name != "allocationTimestamp"}
    if not same_json(before, after):
        yield Violation("status.allocation", "cannot be changed, only cleared")


def _deallocation(_kind: Kind, old: Json, new: Json) -> Iterator[Violation]:
    path = "status.deallocationRequested"
    before, after = old.get("status") or {}, new.get("status") or {}
    was, now = before.get("deallocationRequested"), after.get("deallocationRequested")
    if now and not was and after.get("reservedFor"):
        yield Violation(path, "cannot be requested while the claim is reserved")
    if now and before.get("allocation") is None and after.get("allocation") is not None:
        yield Violation("status.allocation", "cannot be set while deallocation is requested")
    if was and not now and after.get("allocation") is not None:
        yield Violation(path, "cannot be taken back while there is an allocation")


# Other kinds


def _claim_names(_kind: Kind, _old: Json, new: Json) -> Iterator[Violation]:
    path = "status.resourceClaimStatuses"
    entries = (new.get("status") or {}).get("resourceClaimStatuses")
    yield from _unique(path, entries, "name")
    known = [claim.get("name") for claim in (new.get("spec") or {}).get("resourceClaims") or []]
    for entry in entries or []:
        if entry.get("name") not in known:
            yield Violation(path, f"the pod has no claim {entry.get('name')!r}")


def _nodes(_kind: Kind, _old: Json, new: Json) -> Iterator[Violation]:
    spec, status = new.get("spec") or {}, new.get("status") or {}
    yield from _few("spec.potentialNodes", spec.get("potentialNodes"))
    yield from _unique("status.resourceClaims", status.get("resourceClaims"), "name")
    for entry in status.get("resourceClaims") or []:
        yield from _few("status.resourceClaims.unsuitableNodes", entry.get("unsuitableNodes"))


def _few(path: str, nodes: Any) -> Iterator[Violation]:
    if len(nodes or []) > MAX_NODES:
        yield Violation(path, f"has {len(nodes)} entries, at most {MAX_NODES} are fine")


def _bound_once(_kind: Kind, old: Json, new: Json) -> Iterator[Violation]:
    before, after = ((state.get("spec") or {}).get("nodeName") for state in (old, new))
    if before and before != after:
        yield Violation("spec.nodeName", f"the pod is bound to {before} already")


_EVERY_KIND: tuple[Rule, ...] = (_metadata, _immutable_spec)
_RULES: Mapping[str, tuple[Rule, ...]] = {
    "ResourceClaim": (_reservations, _allocation, _deallocation),
    "Pod": (_claim_names, _bound_once),
    "PodGroup": (_claim_names,),
    "PodSchedulingContext": (_nodes,),
    "PodScheduling": (_nodes,),
}
