"""PodSchedulingContext: wanted changes are recorded, and become one API call at the end.

What may live here: the record of what is known and wanted, and the payloads made of it.
When a payload is sent, and what its answer leads to, is ``context_publishing``'s business;
which nodes to ask for that of ``context_nodes``.

Instead of editing a copy of the object, the changes are recorded (select a node, deselect
it, set the potential nodes). Recording makes no call. A payload is made if, and only if,
a recorded change differs from what the object has, and it can have any of four forms:

* **create**, while there is no object;
* **update** of the whole object with its resourceVersion, the usual way;
* **merge patch** of what changed, as the caller prefers;
* **server-side apply** after an update met with a conflict. Under load one update in ten
  does, because drivers write the status of the same object; an apply does not depend on
  the version, and saves another attempt to schedule the pod (k/k#120534).

An apply states the full intent. What it leaves out is only removed if an earlier apply of
the same manager had set it, never what its create or update set: so both fields are always
there, an unchanged one as known, an empty one as ``""`` or ``[]``. And it has the UID:
without it an apply to an object that was deleted would create one without owner.

Source: k8s.io/api/resource/v1alpha3, v1alpha2 and v1alpha1; KEP-3063.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

import attrs

from dra_core.api.core import ObjectMeta, OwnerReference, Pod
from dra_core.api.names import ObjectKey
from dra_core.api.request import ApiRequest, Target
from dra_core.api.scheduling_context import MAX_NODES, PodSchedulingContext
from dra_core.api.wire import encode, encode_whole
from dra_core.api.wire_versions import CONTEXT_KINDS, RESOURCE_GROUP, split_api_version
from dra_core.errors import ReadInOtherVersionError
from dra_core.scheduling.errors import (
    ContextNotOwnedError,
    IncompleteContextError,
    PotentialNodesError,
)

Json = dict[str, Any]

_RESOURCES = {
    "PodSchedulingContext": "podschedulingcontexts",
    "PodScheduling": "podschedulings",
}


class ChangeForm(Enum):
    """How an object that exists is changed, before anything met with a conflict."""

    UPDATE = "update"
    """The whole object, with its resourceVersion. Cheap for the API server."""
    MERGE_PATCH = "merge patch"
    """Only what changed, with the UID and the resourceVersion."""
    MERGE_PATCH_ANY_VERSION = "merge patch of any version"
    """Only what changed, with the UID: whatever happened to the object meanwhile."""


@attrs.frozen
class ContextPolicy:
    """How contexts are written. Make one for the cluster.

    ``field_manager`` is the name under which the API server notes who set a field. The
    version is the served one. ``nodes_are_a_set``: potentialNodes is a set to server-side
    apply, as in early v1alpha2 (always in v1alpha1); an apply would only add to it, so
    after a conflict the object is read and changed again instead. ``block_owner_deletion``
    needs the right to update pods/finalizers (k/k#123512).
    """

    field_manager: str
    version: str = "v1alpha3"
    form: ChangeForm = ChangeForm.UPDATE
    nodes_are_a_set: bool = False
    block_owner_deletion: bool = False
    kind: str = attrs.field(init=False)

    @kind.default
    def _kind_of_version(self) -> str:
        kind = CONTEXT_KINDS.get(self.version)
        if kind is None:
            known = ", ".join(CONTEXT_KINDS)
            raise ValueError(f"unknown version {self.version!r}; known: {known}")
        return kind

    @property
    def can_apply(self) -> bool:
        """Whether server-side apply can state the potential nodes."""
        return not self.nodes_are_a_set and self.version != "v1alpha1"

    def target(self, key: ObjectKey) -> Target:
        """Where the context of the pod ``key`` is."""
        return Target(RESOURCE_GROUP, self.version, _RESOURCES[self.kind], *key)


class ContextSpec(NamedTuple):
    """What a context says, or is to say: ``spec``."""

    selected_node: str = ""
    potential_nodes: tuple[str, ...] = ()


@attrs.frozen
class ContextRecord:
    """What is known of a pod's context, and which changes of it are wanted.

    ``key`` and ``pod_uid`` are the pod's. ``known`` is the newest copy of the object,
    ``None`` while there is none. ``selected_node`` and ``potential_nodes`` are what was
    recorded, ``None`` where nothing was; ``""`` deselects. Frozen: recording returns a new
    record. So one may be handed to another thread for publishing while more is recorded,
    see ``published``.
    """

    key: ObjectKey
    pod_uid: str
    known: PodSchedulingContext | None = None
    selected_node: str | None = None
    potential_nodes: tuple[str, ...] | None = None

    def load(self, context: PodSchedulingContext | None) -> "ContextRecord":
        """The record with a newer copy of the object, ``None``: it does not exist.

        What was recorded stays recorded. Raises ``ContextNotOwnedError`` if this pod does
        not control the object, for instance because an older pod of that name did.
        """
        if context is not None:
            owner = context.metadata.controller()
            uid = "" if owner is None else owner.uid
            if context.metadata.key != self.key or uid != self.pod_uid:
                name = str(context.metadata.key)
                raise ContextNotOwnedError(name, uid, str(self.key), self.pod_uid)
        return attrs.evolve(self, known=context)

    def select_node(self, node: str) -> "ContextRecord":
        """Record that drivers shall allocate for ``node``, a name that is not empty."""
        if not node:
            raise ValueError("no node to select; use deselect_node")
        return attrs.evolve(self, selected_node=node)

    def deselect_node(self) -> "ContextRecord":
        """Record that no node is selected."""
        return attrs.evolve(self, selected_node="")

    def set_potential_nodes(self, nodes: Iterable[str]) -> "ContextRecord":
        """Record for which nodes drivers shall say whether they suit.

        The order is kept. Raises ``PotentialNodesError`` for more than 128 nodes, and for
        one that comes twice.
        """
        names = tuple(nodes)
        if len(names) > MAX_NODES:
            raise PotentialNodesError(
                str(self.key), f"are {len(names)}, at most {MAX_NODES} may be"
            )
        if len(set(names)) < len(names):
            raise PotentialNodesError(str(self.key), "are not all different")
        return attrs.evolve(self, potential_nodes=names)

    @property
    def existing(self) -> ContextSpec:
        """What the object has; nothing of both while it does not exist."""
        known = self.known
        return ContextSpec(known.selected_node, known.potential_nodes) if known else ContextSpec()

    @property
    def intent(self) -> ContextSpec:
        """What the object is to have: what was recorded, and the rest as it is."""
        selected, potential = self.existing
        return ContextSpec(
            selected if self.selected_node is None else self.selected_node,
            potential if self.potential_nodes is None else self.potential_nodes,
        )

    @property
    def dirty(self) -> bool:
        """Whether something has to be sent: a recorded change differs from the object."""
        return self.intent != self.existing

    def published(
        self, context: PodSchedulingContext | None, sent: "ContextRecord"
    ) -> "ContextRecord":
        """The record after ``sent`` was published.

        ``context``, what the API server returned, is known now, and what was sent is
        forgotten. What was recorded since then, and is something else, stays.
        Raises ``ContextNotOwnedError`` as ``load`` does.
        """
        selected, potential = self.selected_node, self.potential_nodes
        return attrs.evolve(
            self.load(context),
            selected_node=None if selected == sent.selected_node else selected,
            potential_nodes=None if potential == sent.potential_nodes else potential,
        )


def context_record(pod: Pod, known: PodSchedulingContext | None = None) -> ContextRecord:
    """A record for ``pod`` with nothing recorded; ``known`` is the object, if it exists.

    Raises ``ContextNotOwnedError`` if the pod does not control it.
    """
    return ContextRecord(pod.metadata.key, pod.metadata.uid).load(known)


# --- payloads ----------------------------------------------------------------------------


def get_context(record: ContextRecord, policy: ContextPolicy) -> ApiRequest:
    """Read the object."""
    return policy.target(record.key).get()


def create_context(record: ContextRecord, policy: ContextPolicy) -> ApiRequest:
    """Create the object as it is wanted, controlled by the pod."""
    owner = OwnerReference(
        "v1", "Pod", record.key.name, record.pod_uid, True, policy.block_owner_deletion
    )
    metadata = ObjectMeta(record.key.name, record.key.namespace, owner_references=(owner,))
    context = PodSchedulingContext(metadata, *record.intent)
    body = encode(context, policy.version)
    return policy.target(record.key).create(body, policy.field_manager)


def change_context(record: ContextRecord, policy: ContextPolicy) -> ApiRequest:
    """Change the object, in the form that the policy prefers.

    Raises ``IncompleteContextError`` if there is no copy of it with UID and resourceVersion,
    and ``ReadInOtherVersionError`` for an update of a copy read in another version.
    """
    if policy.form is ChangeForm.UPDATE:
        return update_context(record, policy)
    guarded = policy.form is ChangeForm.MERGE_PATCH
    return patch_context(record, policy, any_version=not guarded)


def update_context(record: ContextRecord, policy: ContextPolicy) -> ApiRequest:
    """Replace the object, unknown fields kept, if it still has the known resourceVersion.

    Raises ``IncompleteContextError`` and ``ReadInOtherVersionError`` as ``change_context``.
    """
    known = _complete(record)
    selected, potential = record.intent
    changed = attrs.evolve(known, selected_node=selected, potential_nodes=potential)
    body = _whole(changed, policy)
    return policy.target(record.key).update(body, policy.field_manager)


def patch_context(
    record: ContextRecord, policy: ContextPolicy, *, any_version: bool = False
) -> ApiRequest:
    """Change what is to be changed, by a merge patch, if the object has the known UID.

    ``any_version``: whatever its resourceVersion is. Raises ``IncompleteContextError``.
    """
    metadata = _complete(record).metadata
    guards = {"uid": metadata.uid}
    if not any_version:
        guards["resourceVersion"] = metadata.resource_version
    existing, intent = record.existing, record.intent
    spec: Json = {}
    if intent.selected_node != existing.selected_node:
        spec["selectedNode"] = intent.selected_node or None  # null removes it
    if intent.potential_nodes != existing.potential_nodes:
        spec["potentialNodes"] = list(intent.potential_nodes)
    body = {"metadata": guards, "spec": spec}
    return policy.target(record.key).merge_patch(body, policy.field_manager)


def apply_context(record: ContextRecord, policy: ContextPolicy) -> ApiRequest:
    """State everything that is wanted, whatever happened to the object meanwhile.

    Forced: fields that others set are taken over. Raises ``IncompleteContextError`` if there
    is no copy of the object with a UID, and ``ValueError`` where potential nodes are a set.
    """
    if not policy.can_apply:
        raise ValueError("server-side apply would only add to the set of potential nodes")
    body = {
        "apiVersion": f"{RESOURCE_GROUP}/{policy.version}",
        "kind": policy.kind,
        "metadata": {
            "name": record.key.name,
            "namespace": record.key.namespace,
            "uid": _complete(record).metadata.uid,
        },
        "spec": {
            "selectedNode": record.intent.selected_node,
            "potentialNodes": list(record.intent.potential_nodes),
        },
    }
    return policy.target(record.key).apply(body, policy.field_manager, force=True)


def delete_context(record: ContextRecord, policy: ContextPolicy) -> ApiRequest:
    """Delete the object after binding, without asking whether it exists.

    That it does not is as good (``Next.DONE``). If a copy is known, another incarnation of
    the object is left alone: the next pod of that name may be at work.
    """
    uid = "" if record.known is None else record.known.metadata.uid
    return policy.target(record.key).delete(uid)


def _complete(record: ContextRecord) -> PodSchedulingContext:
    known = record.known
    if known is None:
        raise IncompleteContextError(str(record.key), "a copy of it")
    if not known.metadata.uid:
        raise IncompleteContextError(str(record.key), "metadata.uid")
    if not known.metadata.resource_version:
        raise IncompleteContextError(str(record.key), "metadata.resourceVersion")
    return known


def _whole(context: PodSchedulingContext, policy: ContextPolicy) -> Json:
    """The object with the unknown fields that it was read with, in the one version of these."""
    raw = context.raw or {}
    read_in = split_api_version(str(raw.get("apiVersion") or ""))[1]
    if read_in not in ("", policy.version):
        name = str(context.metadata.key)
        raise ReadInOtherVersionError(policy.kind, name, read_in, policy.version)
    return encode_whole(context, policy.version)
