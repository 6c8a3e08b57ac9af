"""Which nodes a pod's claims would fit on: the work behind ``allocate``, without output.

What may live here: choosing whom to judge, finding their claims in a dump, asking the
allocator node by node, and the answers as data. How they are shown is the business of
``text`` and ``structured``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial

import attrs

from dra_core.allocator.allocation import DEFAULT_BUDGET, Allocator
from dra_core.allocator.plan import Plan
from dra_core.allocator.results import Allocated, Outcome, Undecided
from dra_core.api.core import Node, ObjectMeta, Pod
from dra_core.api.names import DeviceId, ObjectKey, PoolId
from dra_core.api.objects import AllocationResult, ResourceClaim
from dra_core.claims.names import (
    ResolvedClaim,
    SkippedClaim,
    UnresolvedClaim,
    resolve_claims,
)
from dra_core.claims.reservation import MAX_CONSUMERS, check_reservable, pod_reference
from dra_core.cli import named
from dra_core.cli.load import Dump
from dra_core.errors import ClaimFullError, ClaimNotCreatedError, DraError, SelectorFailedError
from dra_core.explanation import Cause, Names, explain, explain_error
from dra_core.features import Features
from dra_core.inventory.allocated import AllocatedState
from dra_core.inventory.index import Inventory
from dra_core.inventory.matching import NodeMatcher, compile_node_selector
from dra_core.inventory.taint_rules import apply_taint_rules


class Verdict(StrEnum):
    """What was found out about a node, or about a pod on all nodes."""

    FITS = "fits"
    DOES_NOT_FIT = "does-not-fit"
    ERROR = "error"
    UNDECIDED = "undecided"


class ClaimState(StrEnum):
    """What is known of a claim before anything is tried."""

    ALLOCATED = "allocated"
    UNALLOCATED = "unallocated"
    WOULD_BE_CREATED = "would-be-created"
    NOT_NEEDED = "not-needed"
    UNUSABLE = "unusable"


@attrs.frozen
class ClaimUse:
    """One claim of a pod. ``entry`` is the pod's name for it, "" without a pod.

    ``name`` is "namespace/name", "" if it has none yet; ``template`` the name of the
    template that the pod names for it, "" if none. ``claim`` is absent if it is not needed
    or not usable.
    """

    entry: str
    name: str
    template: str
    state: ClaimState
    claim: ResourceClaim | None = None

    @property
    def label(self) -> str:
        """How explanations call the claim."""
        return self.entry or self.name


@attrs.frozen
class NodeAnswer:
    """What one node would give. ``results`` are for the unallocated claims, in order."""

    node: str
    verdict: Verdict
    results: tuple[AllocationResult, ...] = ()
    causes: tuple[Cause, ...] = ()
    steps: int = 0


@attrs.frozen
class Answer:
    """What was found out about one pod, or about claims given by name.

    ``problem`` says why no node was tried, or why the attempt ended; then there are no
    nodes. ``assigned`` is the node the pod has already, "" if none.
    """

    kind: str
    name: str
    uses: tuple[ClaimUse, ...]
    nodes: tuple[NodeAnswer, ...] = ()
    problem: tuple[Cause, ...] = ()
    assigned: str = ""
    finished: bool = False

    @property
    def open_claims(self) -> tuple[ClaimUse, ...]:
        """The claims that something would be allocated for, each once, in order."""
        found: dict[str, ClaimUse] = {}
        for use in self.uses:
            if use.claim is not None and use.claim.allocation is None:
                found.setdefault(use.name or use.entry, use)
        return tuple(found.values())

    @property
    def verdict(self) -> Verdict:
        """FITS if any node does, else UNDECIDED if any is, else DOES_NOT_FIT."""
        found = {answer.verdict for answer in self.nodes}
        for verdict in (Verdict.FITS, Verdict.UNDECIDED):
            if verdict in found:
                return verdict
        return Verdict.DOES_NOT_FIT


@attrs.frozen
class Subject:
    """Whom to judge: a pod, or (pod absent) claims that are allocated together."""

    name: str
    pod: Pod | None = None
    claims: tuple[ResourceClaim, ...] = ()


def pending_pods(dump: Dump) -> list[Subject]:
    """Every pending pod with claims, by name: no node yet, and not finished."""
    pods = sorted(dump.pods, key=lambda pod: pod.metadata.key)
    return [
        Subject(str(pod.metadata.key), pod)
        for pod in pods
        if pod.resource_claims and not pod.node_name and not pod.finished
    ]


def nodes_of_slices(dump: Dump) -> list[Node]:
    """Nodes that slices and their devices name, by name; their labels are not known."""
    names = {s.node_name for s in dump.slices}
    names.update(device.node_name for s in dump.slices for device in s.devices)
    nodes = {name: Node(ObjectMeta(name)) for name in names if name}
    nodes |= {node.name: node for node in named.nodes_of_slices(dump)}
    return [nodes[name] for name in sorted(nodes)]


@attrs.frozen
class NoNodesError(DraError):
    """There is no node to try."""

    def __str__(self) -> str:
        return "there are no nodes in the input, and no slice names one"


class Judge:
    """Judges each subject alone against what a dump says is there and in use."""

    def __init__(
        self,
        dump: Dump,
        nodes: Sequence[Node],
        features: Features,
        share_ids: Callable[[], str],
        budget: int | None = DEFAULT_BUDGET,
        on_node: Callable[[], None] = lambda: None,
    ) -> None:
        self._nodes = nodes
        self._budget = budget
        self._on_node = on_node
        self._claims = {claim.metadata.key: claim for claim in dump.claims}
        self._templates = {template.metadata.key: template for template in dump.templates}
        slices = dump.slices
        if features.device_taints:
            slices = apply_taint_rules(slices, dump.rules)
        self._allocated = AllocatedState.from_claims(dump.claims, features.consumable_capacity)
        self._allocator = Allocator(
            Inventory(slices), dump.classes, share_ids=share_ids, features=features
        )
        self._named = named.allocator_for(dump)

    def judge(self, subject: Subject) -> Answer:
        """All nodes for one subject; a fault of its own ends the attempt."""
        uses, problems = self._uses(subject)
        answer = Answer("Pod", subject.name, uses, problem=problems)
        if subject.pod is None:
            answer = attrs.evolve(answer, kind="ResourceClaim")
        else:
            pod = subject.pod
            answer = attrs.evolve(answer, assigned=pod.node_name, finished=pod.finished)
        if problems:
            return answer
        try:
            return attrs.evolve(answer, nodes=tuple(self._on_all_nodes(answer)))
        except DraError as error:
            return attrs.evolve(answer, problem=explain(error))

    # --- claims ----------------------------------------------------------------------

    def _uses(self, subject: Subject) -> tuple[tuple[ClaimUse, ...], tuple[Cause, ...]]:
        if subject.pod is None:
            pairs = [self._use("", "", claim, None) for claim in subject.claims]
            return tuple(use for use, _ in pairs), tuple(cause for _, cause in pairs if cause)
        pod = subject.pod
        answers = resolve_claims(pod, self._claims.get, workload_claims=True).answers
        pairs = [
            self._use_of_pod(pod, entry.resource_claim_template_name or "", answer)
            for entry, answer in zip(pod.resource_claims, answers, strict=True)
        ]
        return tuple(use for use, _ in pairs), tuple(cause for _, cause in pairs if cause)

    def _use_of_pod(
        self, pod: Pod, template: str, answer: ResolvedClaim | SkippedClaim | UnresolvedClaim
    ) -> tuple[ClaimUse, Cause | None]:
        entry = answer.pod_claim
        if isinstance(answer, SkippedClaim):
            return ClaimUse(entry, "", template, ClaimState.NOT_NEEDED), None
        if isinstance(answer, UnresolvedClaim):
            if isinstance(answer.reason, ClaimNotCreatedError):
                return self._use_of_template(pod, entry, template)
            return _unusable(entry, "", template, explain_error(answer.reason))
        return self._use(entry, template, answer.claim, pod)

    def _use_of_template(
        self, pod: Pod, entry: str, template: str
    ) -> tuple[ClaimUse, Cause | None]:
        found = self._templates.get(ObjectKey(pod.namespace, template))
        if found is None:
            text = (
                f"claim {entry}: not created yet, and its ResourceClaimTemplate "
                f"{pod.namespace}/{template} is not in the input"
            )
            return _unusable(entry, "", template, Cause("template-not-found", text))
        claim = named.claim_of(found, ObjectMeta(f"{pod.name}-{entry}", pod.namespace))
        use, problem = self._use(entry, template, claim, pod)
        if problem is not None:
            return use, problem
        return attrs.evolve(use, name="", state=ClaimState.WOULD_BE_CREATED), None

    def _use(
        self, entry: str, template: str, claim: ResourceClaim, pod: Pod | None
    ) -> tuple[ClaimUse, Cause | None]:
        """A claim that exists, and why it is of no use if it is not."""
        name = str(claim.metadata.key)
        if claim.deallocation_requested:  # its driver will take the allocation away
            text = f"claim {entry or name} is about to be deallocated by its controller"
            return _unusable(entry, name, template, Cause("deallocation-requested", text))
        if claim.allocation is None:
            controller = named.controller_of(claim, self._named)
            if controller:
                text = f"claim {entry or name} is allocated by the controller {controller}"
                return _unusable(entry, name, template, Cause("other-controller", text))
            return ClaimUse(entry, name, template, ClaimState.UNALLOCATED, claim), None
        try:
            if pod is not None:
                limit = named.limit_of(claim, MAX_CONSUMERS)
                check_reservable(claim, pod_reference(pod), limit)
        except ClaimFullError as error:
            return _unusable(entry, name, template, explain_error(error))
        return ClaimUse(entry, name, template, ClaimState.ALLOCATED, claim), None

    # --- nodes -----------------------------------------------------------------------

    def _on_all_nodes(self, answer: Answer) -> Iterable[NodeAnswer]:
        if not self._nodes:
            raise NoNodesError
        held = [
            (use, compile_node_selector(use.claim.allocation.node_selector))
            for use in answer.uses
            if use.claim is not None
            and use.claim.allocation is not None
            and use.claim.allocation.node_selector is not None
        ]
        trials = self._trials(answer.open_claims)
        for node in self._nodes:
            yield _held_elsewhere(node, held) or _on_node(trials, node)
            self._on_node()

    def _trials(self, uses: Sequence[ClaimUse]) -> list["_Trial"]:
        """How to try the claims on a node: those of v1alpha2 have an allocator of their own.

        A cluster has claims of one shape, a dump of several clusters may have both.
        """
        older = [place for place, use in enumerate(uses) if named.is_named(use.claim)]
        others = [place for place in range(len(uses)) if place not in older]
        trials = []
        if older:
            claims = _claims_at(uses, older)
            trial = named.trial(self._named, claims, self._allocated, self._budget)
            trials.append(_Trial(tuple(older), _labels_at(uses, older), trial.on_node))
        if others or not older:
            ask = partial(self._ask, self._allocator.plan(_claims_at(uses, others)))
            trials.append(_Trial(tuple(others), _labels_at(uses, others), ask))
        return trials

    def _ask(self, plan: Plan, node: Node) -> Outcome:
        return self._allocator.allocate(plan, node, self._allocated, budget=self._budget)


def _claims_at(uses: Sequence[ClaimUse], places: Sequence[int]) -> list[ResourceClaim]:
    return [use.claim for use in (uses[place] for place in places) if use.claim is not None]


def _labels_at(uses: Sequence[ClaimUse], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(uses[place].label for place in places)


@attrs.frozen
class _Trial:
    """Claims that are allocated together: their places in the answer, and the question."""

    places: tuple[int, ...]
    labels: tuple[str, ...]
    ask: Callable[[Node], Outcome]


def _on_node(trials: Sequence[_Trial], node: Node) -> NodeAnswer:
    """What a node would give for all claims; what does not fit first ends it."""
    results: dict[int, AllocationResult] = {}
    steps = 0
    for trial in trials:
        try:
            outcome = trial.ask(node)
        except SelectorFailedError as error:
            if error.reason != "selector-runtime":
                raise
            return NodeAnswer(node.name, Verdict.ERROR, causes=explain(error))
        steps += outcome.steps
        if not isinstance(outcome, Allocated):
            undecided = isinstance(outcome, Undecided)
            verdict = Verdict.UNDECIDED if undecided else Verdict.DOES_NOT_FIT
            causes = explain(outcome, names_on(node.name, trial.labels))
            return NodeAnswer(node.name, verdict, causes=causes, steps=steps)
        results |= dict(zip(trial.places, outcome.results, strict=True))
    ordered = tuple(results[place] for place in sorted(results))
    return NodeAnswer(node.name, Verdict.FITS, ordered, steps=steps)


def names_on(node: str, claims: tuple[str, ...] = ()) -> Names:
    """Short names on a node: a pool that is called like the node goes without saying."""

    def device(device_id: DeviceId) -> str:
        _, pool, name = device_id
        # Resources of v1alpha2 that are of no node have no pool.
        return name if pool in (node, "") else f"{pool}/{name}"

    def pool(pool_id: PoolId) -> str:
        driver, name = pool_id
        return f"{driver}/{name}" if name != node else f"{driver}/(node)"

    return Names(claims, device, pool)


def _unusable(entry: str, name: str, template: str, cause: Cause) -> tuple[ClaimUse, Cause]:
    return ClaimUse(entry, name, template, ClaimState.UNUSABLE), cause


def _held_elsewhere(node: Node, held: Sequence[tuple[ClaimUse, NodeMatcher]]) -> NodeAnswer | None:
    """The answer for a node that an allocated claim rules out."""
    missing = [use for use, matcher in held if not matcher.matches(node)]
    if not missing:
        return None
    causes = tuple(
        Cause("allocated-elsewhere", f"claim {use.label} is allocated, not for this node")
        for use in missing
    )
    return NodeAnswer(node.name, Verdict.DOES_NOT_FIT, causes=causes)


def exit_code(answers: Iterable[Answer]) -> int:
    """3 if any pod is undecided, else 1 if any fits nowhere, else 0."""
    verdicts: Mapping[Verdict, int] = {Verdict.UNDECIDED: 3, Verdict.DOES_NOT_FIT: 1}
    return max((verdicts.get(answer.verdict, 0) for answer in answers), default=0)
