"""``allocate``: whom it judges, what it says, how it ends."""

import copy
import json
from typing import Any

import pytest

from dra_core.cli.judge import Judge, Subject
from dra_core.cli.text import NOT_CONSIDERED
from support import commands
from support.commands import (
    DRIVER,
    Json,
    allocated,
    claim,
    device,
    device_class,
    node,
    pod,
    report_on,
    request,
    resource_slice,
    run,
    run_on,
    small_cluster,
    template,
)


def verdicts(report: Json) -> dict[str, str]:
    return {answer["name"]: answer["verdict"] for answer in report["answers"]}


def nodes_of(report: Json, number: int = 0) -> dict[str, str]:
    """Verdict by node of one answer."""
    return {found["name"]: found["verdict"] for found in report["answers"][number]["nodes"]}


def picked(report: Json, number: int = 0) -> dict[str, list[str]]:
    """Names of the devices by node of one answer, all claims together."""
    return {
        found["name"]: [
            result["device"]
            for allocation in found["allocations"]
            for result in allocation["allocation"].get("devices", {}).get("results", ())
        ]
        for found in report["answers"][number]["nodes"]
    }


# --- whom ----------------------------------------------------------------------------


def test_pending_pods_with_claims() -> None:
    """Pending: no node, not finished. Pods without claims are nobody's business."""
    running = pod("running", gpu="claim")
    running["spec"]["nodeName"] = "node-1"
    report = report_on(
        *small_cluster(),
        running,
        pod("plain"),
        pod("done", phase="Succeeded", gpu="claim"),
        pod("broken", phase="Failed", gpu="claim"),
        pod("another", namespace="a", phase="", gpu="tpl:tpl"),
        template(namespace="a"),
    )
    assert list(verdicts(report)) == ["a/another", "ns/pod"]


def test_each_pod_alone() -> None:
    """Every pod is judged alone against the dump: two may be given one device."""
    report = report_on(*small_cluster(pod("pod-2", gpu="claim-2"), claim("claim-2")))
    assert verdicts(report) == {"ns/pod": "fits", "ns/pod-2": "fits"}
    assert picked(report, 0) == picked(report, 1) == {"node-1": ["gpu-0"]}


def test_pods_by_name() -> None:
    """--pod judges that pod, whatever its state; without namespace it is in "default"."""
    running = pod("running", gpu="claim")
    running["spec"]["nodeName"] = "node-1"
    done = pod("done", namespace="default", phase="Succeeded", gpu="tpl:tpl")
    objects = small_cluster(running, done, template(namespace="default"))
    arguments = ("--pod", "ns/running", "--pod", "done", "--pod", "ns/running")
    report = report_on(*objects, arguments=arguments)
    assert verdicts(report) == {"ns/running": "fits", "default/done": "fits"}
    assert [answer["assignedNode"] for answer in report["answers"]] == ["node-1", None]
    assert [answer["finished"] for answer in report["answers"]] == [False, True]
    text = run_on(*objects, arguments=("allocate", *arguments)).out
    assert "ns/running: fits on 1 of 1 node (the pod is on node-1 already)" in text
    assert "default/done: fits on 1 of 1 node (the pod has finished)" in text


def test_claims_by_name() -> None:
    """Several --claim are allocated together, as those of one pod."""
    objects = small_cluster(claim("second"), devices=2)
    report = report_on(*objects, arguments=("--claim", "ns/claim", "--claim", "ns/second"))
    assert picked(report) == {"node-1": ["gpu-0", "gpu-1"]}
    assert report["answers"][0]["kind"] == "ResourceClaim"
    assert report["answers"][0]["name"] == "ns/claim, ns/second"
    ran = run_on(*objects[:-2], claim("second"), claim(), node("node-0"), arguments=(
        "allocate", "--claim", "ns/claim", "--claim", "ns/second"))  # fmt: skip
    assert ran.out.startswith("1 set of claims on 2 nodes: 1 fits.")
    assert "ns/claim/gpu: gpu-0" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pod", "ns/podd"), "Pod 'ns/podd' is not in the input; did you mean ns/pod?"),
        (("--claim", "ns/x"), "ResourceClaim 'ns/x' is not in the input"),
        (("--node", "node-2"), "Node 'node-2' is not in the input; did you mean node-1?"),
        (("--pod", "a/b/c"), "'a/b/c' is not NAMESPACE/NAME"),
        (("--pod", "/b"), "'/b' is not NAMESPACE/NAME"),
        (("--pod", "ns/pod", "--claim", "ns/claim"), "not allowed with"),
        (("--feature", "Bogus=off"), "unknown feature 'Bogus'; known: AdminAccess"),
        (("--feature", "AdminAccess"), "say AdminAccess=off or AdminAccess=on"),
        (("--budget", "0"), "not a positive integer"),
        (("-o", "xml"), "invalid choice"),
        (("--nod", "node-1"), "unrecognized arguments"),
    ],
)
def test_wrong_questions(arguments: tuple[str, ...], message: str) -> None:
    """What is asked for and not there is bad input: exit code 2 and a message."""
    ran = run_on(*small_cluster(), arguments=("allocate", *arguments))
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_nothing_pending() -> None:
    """Nothing to judge is fine."""
    ran = run_on(node(), resource_slice())
    assert ran.code == 0
    assert ran.out.startswith("0 pending pods on 1 node: nothing to do.\n")


# --- nodes ---------------------------------------------------------------------------


def test_one_node() -> None:
    """--node tries that node only."""
    objects = small_cluster(node("node-2"))
    assert nodes_of(report_on(*objects)) == {"node-1": "fits", "node-2": "does-not-fit"}
    report = report_on(*objects, arguments=("--node", "node-2"))
    assert nodes_of(report) == {"node-2": "does-not-fit"}


def test_nodes_of_slices() -> None:
    """Without Node objects the nodes come from the slices, and the output says so."""
    per_device = resource_slice(
        "pool", device("d", nodeName="node-0"), nodeName=None, perDeviceNodeSelection=True
    )
    objects = [*small_cluster()[1:], per_device]
    report = report_on(*objects)
    assert nodes_of(report) == {"node-0": "fits", "node-1": "fits"}
    note = "no Node objects in the input: the nodes are those that slices name"
    assert any(told.startswith(note) for told in report["notes"])
    assert f"Note: {note}" in run_on(*objects).out
    assert note not in run_on(*small_cluster()).out
    report = report_on(*objects, arguments=("--node", "node-1"))
    assert nodes_of(report) == {"node-1": "fits"}


def test_no_nodes_at_all() -> None:
    """Without any node nothing fits, and the reason is told."""
    ran = run_on(device_class(), claim(), pod(gpu="claim"))
    assert ran.code == 1
    assert "there are no nodes in the input" in ran.out


def test_allocated_claims_restrict_the_nodes() -> None:
    """A claim that is allocated already limits the pod to the nodes of its selector."""
    objects = [
        node(), node("node-2"), resource_slice(), resource_slice("node-2"), device_class(),
        allocated(claim("shared"), "gpu-0", node="node-2"), claim("own"),
        pod(a="shared"), pod("both", a="shared", b="own"),
    ]  # fmt: skip
    report = report_on(*objects)
    assert verdicts(report) == {"ns/both": "does-not-fit", "ns/pod": "fits"}
    assert nodes_of(report, 1) == {"node-1": "does-not-fit", "node-2": "fits"}
    kinds = [n["causes"][0]["kind"] for n in report["answers"][0]["nodes"]]
    assert kinds == ["allocated-elsewhere", "too-few"]
    states = [use["state"] for use in report["answers"][0]["claims"]]
    assert states == ["allocated", "unallocated"]
    assert "fits: allocated already" in run_on(*objects).out


def test_allocated_everywhere() -> None:
    """An allocation without node selector is available on all nodes."""
    held = allocated(claim("shared"), "gpu-0")
    del held["status"]["allocation"]["nodeSelector"]
    report = report_on(node(), node("node-2"), held, pod(a="shared"))
    assert nodes_of(report) == {"node-1": "fits", "node-2": "fits"}


def test_unusable_selector_of_an_allocation() -> None:
    """An allocation whose node selector is none is told, not guessed."""
    held = allocated(claim("shared"), "gpu-0")
    term = held["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]
    term["matchFields"][0]["operator"] = "Exists"
    report = report_on(node(), held, pod(a="shared"))
    assert verdicts(report) == {"ns/pod": "does-not-fit"}
    assert "Exists" in report["answers"][0]["problem"][0]["text"]


# --- claims --------------------------------------------------------------------------


def test_claim_that_would_be_created() -> None:
    """A template claim that does not exist yet is tried from its template, and marked."""
    objects = [*small_cluster()[:3], template("tpl"), pod(gpu="tpl:tpl")]
    report = report_on(*objects)
    assert verdicts(report) == {"ns/pod": "fits"}
    assert report["answers"][0]["claims"] == [
        {"entry": "gpu", "name": None, "template": "tpl", "state": "would-be-created"}
    ]
    assert "claim gpu (template tpl, would be created)" in run_on(*objects).out


def test_claim_that_was_created() -> None:
    """A template claim that exists is found by the pod's status, and checked for its owner."""
    wanted = pod(gpu="tpl:tpl")
    wanted["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "pod-gpu-x"}]
    made = claim("pod-gpu-x", request("gpu", "false"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "uid-pod", "controller": True}
    objects = [*small_cluster()[:3], template("tpl"), wanted]
    made["metadata"]["ownerReferences"] = [owner]
    report = report_on(*objects, made)
    assert verdicts(report) == {"ns/pod": "does-not-fit"}  # the claim counts, not the template
    made["metadata"]["ownerReferences"] = [{**owner, "uid": "uid-of-an-older-pod"}]
    report = report_on(*objects, made)
    assert "was not generated for Pod 'ns/pod'" in report["answers"][0]["problem"][0]["text"]


def test_no_claim_needed() -> None:
    """An entry that needs no claim is skipped."""
    wanted = pod(gpu="tpl:tpl")
    wanted["status"]["resourceClaimStatuses"] = [{"name": "gpu"}]
    report = report_on(node(), wanted)
    assert verdicts(report) == {"ns/pod": "fits"}
    assert report["answers"][0]["claims"][0]["state"] == "not-needed"


@pytest.mark.parametrize(
    ("more", "target", "text"),
    [
        ((), "missing", "ResourceClaim 'missing' does not exist"),
        ((), "tpl:tpl", "ResourceClaimTemplate ns/tpl is not in the input"),
        ((template("tpl", namespace="other"),), "tpl:tpl", "ns/tpl is not in the input"),
        ((claim("c", namespace="other"),), "c", "ResourceClaim 'c' does not exist"),
    ],
)
def test_claims_that_do_not_resolve(more: tuple[Json, ...], target: str, text: str) -> None:
    """A pod with claims that do not resolve is reported with its reason."""
    report = report_on(*small_cluster()[:-1], *more, pod(first="claim", gpu=target))
    answer = report["answers"][0]
    assert answer["verdict"] == "does-not-fit"
    assert answer["nodes"] == []
    assert len(answer["problem"]) == 1
    assert text in answer["problem"][0]["text"]
    assert [use["state"] for use in answer["claims"]] == ["unallocated", "unusable"]


def test_claim_being_deleted() -> None:
    """A claim that is going away cannot be used."""
    going = claim()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    report = report_on(*small_cluster()[:3], going, pod(gpu="claim"))
    assert "is being deleted" in report["answers"][0]["problem"][0]["text"]


def test_full_claim() -> None:
    """A claim that has as many consumers as it may have is of no use to one more."""
    full = allocated(claim(), "gpu-0", reserved=tuple(f"uid-{n}" for n in range(256)))
    one_of_them = pod("7", gpu="claim")
    report = report_on(*small_cluster()[:3], full, pod(gpu="claim"), one_of_them)
    assert verdicts(report) == {"ns/7": "fits", "ns/pod": "does-not-fit"}
    assert "256 consumers" in report["answers"][1]["problem"][0]["text"]


def test_two_entries_for_one_claim() -> None:
    """A claim that two entries of a pod name is allocated once."""
    report = report_on(*small_cluster()[:-1], pod(a="claim", b="claim"))
    assert picked(report) == {"node-1": ["gpu-0"]}
    assert [use["entry"] for use in report["answers"][0]["claims"]] == ["a", "b"]


@pytest.mark.parametrize("arguments", [(), ("--claim", "ns/claim")])
def test_claims_of_a_controller(arguments: tuple[str, ...]) -> None:
    """A claim that a control plane controller allocates is not the scheduler's (v1alpha3)."""
    old = claim()
    old["apiVersion"] = "resource.k8s.io/v1alpha3"
    old["spec"] = {"controller": "ctl.example.com", "devices": {}}
    report = report_on(*small_cluster()[:3], old, pod(gpu="claim"), arguments=arguments)
    assert verdicts(report)[report["answers"][0]["name"]] == "does-not-fit"
    assert report["answers"][0]["problem"][0]["kind"] == "other-controller"
    assert "ctl.example.com" in report["answers"][0]["problem"][0]["text"]


# --- in use --------------------------------------------------------------------------


def test_in_use_are_the_allocations_of_claims() -> None:
    """In use is what claims of the dump are allocated, whoever uses them."""
    report = report_on(*small_cluster(allocated(claim("other"), "gpu-0")))
    assert verdicts(report) == {"ns/pod": "does-not-fit"}
    causes = report["answers"][0]["nodes"][0]["causes"][0]["because"]
    assert [cause["kind"] for cause in causes] == ["in-use"]


def test_bug_08_admin_access_is_not_counted() -> None:
    """A device held with admin access only is free (k/k#127266)."""
    report = report_on(*small_cluster(allocated(claim("other"), "gpu-0", adminAccess=True)))
    assert verdicts(report) == {"ns/pod": "fits"}


def test_shares_of_other_claims_count() -> None:
    """Shares in use take their capacity away."""
    policy = {"default": "1", "validRange": {"min": "1"}}
    gpu = device(
        "gpu-0",
        allowMultipleAllocations=True,
        capacity={"slots": {"value": "3", "requestPolicy": policy}},
    )
    held = allocated(claim("other"), "gpu-0", shareID="s-1", consumedCapacity={"slots": "2"})
    objects = [node(), resource_slice("node-1", gpu), device_class(), held]
    one = claim("one", request(capacity={"requests": {"slots": "1"}}))
    two = claim("two", request(capacity={"requests": {"slots": "2"}}))
    report = report_on(*objects, one, two, pod("p1", gpu="one"), pod("p2", gpu="two"))
    assert verdicts(report) == {"ns/p1": "fits", "ns/p2": "does-not-fit"}
    result = report["answers"][0]["nodes"][0]["allocations"][0]["allocation"]["devices"]["results"][
        0
    ]
    assert result["consumedCapacity"] == {"slots": "1"}
    assert len(result["shareID"]) == 36
    assert (
        "fits: gpu: gpu-0 [slots 1] (gpu.example.com)"
        in run_on(*objects, one, pod("p1", gpu="one")).out
    )


def test_bug_49_finished_pods() -> None:
    """A finished pod holds nothing by itself; its claim counts until it is released."""
    done = pod("done", phase="Succeeded", gpu="done-claim")
    done["spec"]["nodeName"] = "node-1"
    free = report_on(*small_cluster(done, claim("done-claim")))
    assert verdicts(free) == {"ns/pod": "fits"}
    held = allocated(claim("done-claim"), "gpu-0", reserved=("uid-done",))
    taken = report_on(*small_cluster(done, held))
    assert verdicts(taken) == {"ns/pod": "does-not-fit"}
    assert "1 claim of finished pods not released yet: counted as in use" in taken["notes"]


def test_taint_rules_apply() -> None:
    """Rules in the dump taint devices; with the feature off taints do not count."""
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {
            "deviceSelector": {"device": "gpu-0"},
            "taint": {"key": "broken", "effect": "NoSchedule"},
        },
    }
    objects = small_cluster(rule)
    assert verdicts(report_on(*objects)) == {"ns/pod": "does-not-fit"}
    report = report_on(*objects, arguments=("--feature", "DRADeviceTaints=off"))
    assert verdicts(report) == {"ns/pod": "fits"}


# --- outcomes ------------------------------------------------------------------------


def test_exit_codes() -> None:
    """2 bad input, else 3 if any pod is undecided, else 1 if any fits nowhere, else 0."""
    fits = pod("fits", gpu="claim")
    nowhere = pod("nowhere", gpu="none")
    none = claim("none", request(count=2))
    hard = claim("hard", *(request(f"r{n}") for n in range(3)))
    undecided = pod("undecided", gpu="hard")
    base = [*small_cluster(devices=4)[:-1], none, hard]
    base[1] = resource_slice("node-1", *(device(f"gpu-{n}") for n in range(3)))
    none["spec"]["devices"]["requests"][0]["exactly"]["count"] = 9
    budget = ("allocate", "--budget", "2")
    assert run_on(*base, fits, arguments=budget).code == 0
    assert run_on(*base, fits, nowhere, arguments=budget).code == 1
    assert run_on(*base, fits, nowhere, undecided, arguments=budget).code == 3
    nameless = {"apiVersion": "v1", "kind": "Pod"}
    assert run_on(*base, fits, nowhere, undecided, nameless, arguments=budget).code == 2


def test_undecided() -> None:
    """A node without verdict is told as such, and the pod is undecided if none fits."""
    hard = claim("hard", *(request(f"r{n}") for n in range(3)))
    objects = [*small_cluster(devices=3)[:-2], hard, pod(gpu="hard")]
    ran = run_on(*objects, arguments=("allocate", "--budget", "2"))
    assert ran.code == 3
    assert ran.out.startswith("1 pending pod on 1 node: 0 fit, 1 undecided.")
    assert "ns/pod: undecided" in ran.out
    assert "undecided: no verdict after" in ran.out
    report = report_on(*objects, arguments=("--budget", "2"))
    assert verdicts(report) == {"ns/pod": "undecided"}
    assert report["answers"][0]["nodes"][0]["causes"][0]["kind"] == "budget"
    assert verdicts(report_on(*objects)) == {"ns/pod": "fits"}


def test_a_selector_that_fails_ends_one_node_only() -> None:
    """A selector that fails shows its node as in error, and the others go on."""
    good = device("gpu-0", attributes={"model": {"string": "a"}})
    objects = [
        node(), node("node-2"), resource_slice(), resource_slice("node-2", good),
        device_class("gpu", f'device.attributes["{DRIVER}"].model == "a"'),
        claim(), pod(gpu="claim"),
    ]  # fmt: skip
    report = report_on(*objects)
    assert nodes_of(report) == {"node-1": "error", "node-2": "fits"}
    assert report["answers"][0]["nodes"][0]["causes"][0]["kind"] == "selector-runtime"
    ran = run_on(*objects)
    assert ran.code == 0
    assert "error: claim ns/claim, request gpu: class gpu, selector #0" in ran.out
    ran = run_on(*objects, arguments=("allocate", "--node", "node-1"))
    assert ran.code == 1


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (request(deviceClassName="missing"), "class-not-found"),
        (request("gpu", "device."), "selector-compile"),
        (request(count=33), "too-many-devices"),
        (request(allocationMode="Some"), "unknown-mode"),
    ],
)
def test_faults_of_the_claim_end_the_attempt(asked: Json, reason: str) -> None:
    """A fault that no other node could mend is told once, for the pod."""
    objects = [*small_cluster()[:3], node("node-2"), claim("bad", asked), pod(gpu="bad")]
    report = report_on(*objects)
    answer = report["answers"][0]
    assert (answer["verdict"], answer["nodes"]) == ("does-not-fit", [])
    assert [cause["kind"] for cause in answer["problem"]] == [reason]
    ran = run_on(*objects)
    assert ran.code == 1
    assert "ns/pod: cannot be allocated" in ran.out


def test_features() -> None:
    """--feature switches a gate, with or without the prefix DRA; repeated, the last counts."""
    objects = [*small_cluster()[:3], claim("c", request(adminAccess=True)), pod(gpu="c")]
    assert verdicts(report_on(*objects)) == {"ns/pod": "fits"}
    report = report_on(*objects, arguments=("--feature", "AdminAccess=off"))
    assert report["answers"][0]["problem"][0]["kind"] == "feature-off"
    arguments = ("--feature", "AdminAccess=off", "--feature", "DRAAdminAccess=on")
    assert verdicts(report_on(*objects, arguments=arguments)) == {"ns/pod": "fits"}


# --- output --------------------------------------------------------------------------

SECRET = "hunter2"


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_opaque_parameters_are_never_printed(output: str) -> None:
    """Opaque parameters may be secret: no form of output has them."""
    opaque = {"driver": DRIVER, "parameters": {"password": SECRET}}
    objects = [
        node(), resource_slice(), device_class("gpu", config=[{"opaque": opaque}]),
        claim("c", config=[{"opaque": opaque}]), pod(gpu="c"),
        allocated(claim("d", config=[{"opaque": opaque}]), "gpu-9"), pod("q", gpu="d"),
    ]  # fmt: skip
    ran = run_on(*objects, arguments=("allocate", "-o", output))
    assert ran.code == 0
    assert SECRET not in ran.out + ran.err
    assert "parameters" not in ran.out
    assert DRIVER in ran.out
    if output == "json":
        node_answer = json.loads(ran.out)["answers"][0]["nodes"][0]
        config = node_answer["allocations"][0]["allocation"]["devices"]["config"]
        assert config == [
            {"source": "FromClass", "opaque": {"driver": DRIVER}},
            {"source": "FromClaim", "opaque": {"driver": DRIVER}},
        ]


def test_errors_do_not_print_parameters() -> None:
    """A malformed configuration is named without its content."""
    bad = claim("c", config=[{"opaque": {"driver": 5, "parameters": {"password": SECRET}}}])
    ran = run_on(bad)
    assert ran.code == 2
    assert SECRET not in ran.err
    assert "ResourceClaim 'ns/c': spec.devices.config[0].opaque.driver" in ran.err


def test_allocations_come_in_the_version_of_their_claim() -> None:
    """Results are written in the version that the claim, or its template, was read in."""
    old = claim("old")
    old["apiVersion"] = "resource.k8s.io/v1beta1"
    asked = old["spec"]["devices"]["requests"][0]
    asked.update(asked.pop("exactly"))
    report = report_on(*small_cluster()[:3], old, pod(gpu="old"))
    found = report["answers"][0]["nodes"][0]["allocations"][0]
    assert found["apiVersion"] == "resource.k8s.io/v1beta1"
    assert found["allocation"]["devices"]["results"][0]["device"] == "gpu-0"


def test_json_and_yaml_say_the_same() -> None:
    """The two forms for programs have the same content."""
    from dra_core.cli.yaml_values import yaml_documents

    as_json = run("allocate", commands.EXAMPLE, "-o", "json")
    as_yaml = run("allocate", commands.EXAMPLE, "-o", "yaml")
    (found,) = yaml_documents(as_yaml.out)
    assert without_share_ids(found) == without_share_ids(json.loads(as_json.out))
    assert as_json.code == as_yaml.code == 1


def without_share_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_share_ids(v) for k, v in value.items() if k != "shareID"}
    return [without_share_ids(v) for v in value] if isinstance(value, list) else value


def test_form_of_the_report() -> None:
    """The members of the JSON form, which docs/guides/cli.md promises."""
    report = report_on(*small_cluster())
    assert list(report) == ["version", "summary", "notes", "answers"]
    assert report["version"] == 1
    assert report["summary"] == {
        "judged": 1, "fit": 1, "fitNowhere": 0, "undecided": 0, "nodes": 1,
    }  # fmt: skip
    (answer,) = report["answers"]
    assert list(answer) == [
        "kind", "name", "verdict", "assignedNode", "finished", "claims", "problem", "nodes",
    ]  # fmt: skip
    (found,) = answer["nodes"]
    assert list(found) == ["name", "verdict", "steps", "allocations", "causes"]
    assert found["allocations"] == [
        {
            "claim": "gpu",
            "apiVersion": "resource.k8s.io/v1",
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "gpu", "driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
                    ]
                },
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
                        ]}
                    ]
                },
            },
        }
    ]  # fmt: skip


def test_says_what_is_not_considered() -> None:
    """Every output says that taints, affinity and CPU of nodes are not considered."""
    ran = run_on(*small_cluster())
    assert ran.out.splitlines()[1] == NOT_CONSIDERED
    assert NOT_CONSIDERED.rstrip(".") in report_on(*small_cluster())["notes"]
    for word in ("taints", "affinity", "CPU"):
        assert word in NOT_CONSIDERED


def test_other_kinds_are_ignored_and_told() -> None:
    """Objects of kinds that are not read are counted in a note."""
    others = [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}] * 2
    old = {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "DeviceClass",
        "metadata": {"name": "y"},
    }
    ran = run_on(*small_cluster(*others, old))
    assert (
        "Note: 3 objects of other kinds ignored: apps/v1 Deployment (2), "
        "resource.k8s.io/v1alpha2 DeviceClass (1)."
    ) in ran.out.replace("\n", " ")


def test_equal_nodes_are_grouped() -> None:
    """Nodes with equal answers share a row; pools called like their node do not tell them apart."""
    objects = [*small_cluster()[2:]]
    for number in range(40):
        objects += [node(f"node-{number:02}"), resource_slice(f"node-{number:02}")]
    ran = run_on(*objects)
    rows = ran.out.partition("RESULT\n")[2].splitlines()
    assert rows[0].split() == [
        "node-00,",
        "node-01,",
        "node-02,",
        "fits:",
        "gpu:",
        "gpu-0",
        f"({DRIVER})",
    ]
    assert rows[-1].strip().startswith("and ")
    assert rows[-1].strip().endswith(" more")
    assert len(rows) == 5


def test_same_output_for_any_order_of_the_input() -> None:
    """The order of objects in the input does not show in the output."""
    objects = small_cluster(node("node-0"), pod("b", gpu="claim"), pod("a", gpu="claim"))
    assert run_on(*objects).out == run_on(*reversed(objects)).out


def test_inputs_survive() -> None:
    """Judging changes nothing of what was loaded."""
    from dra_core.cli.load import Loader
    from dra_core.features import Features

    objects = small_cluster(allocated(claim("other"), "gpu-0"), template(), pod("t", gpu="tpl:tpl"))
    before = copy.deepcopy(objects)
    loader = Loader(on_malformed=lambda error: pytest.fail(str(error)))
    loader.add_documents("test", [commands.listed(*objects)])
    dump = loader.dump()
    judge = Judge(dump, dump.nodes, Features(), share_ids=lambda: "id")
    for found in dump.pods:
        judge.judge(Subject(found.name, found))
    assert objects == before
