"""Objects of client packages as plain JSON.

Typed objects are read by the packages themselves from the API server double over HTTP, or
made by hand; what is decoded from them equals what is decoded from the stored JSON.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dra_core.adapters.plain import to_plain
from dra_core.api import wire
from dra_core.errors import MalformedObjectError
from dra_core.testing.api_server import ApiServer
from support import clients
from support.http_api_server import HttpApiServer
from support.valid_objects import CLAIM, CLASS, MISSING, NODE, POD, SLICE, TEMPLATE, changed

Json = dict[str, Any]
Read = Callable[[Json], Any]

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
TAINT = {"key": "a/b", "effect": "NoExecute", "timeAdded": "2026-02-03T04:05:06Z"}
PROBE = {"httpGet": {"port": 80}, "exec": {"command": ["a"]}}

OBJECTS: dict[str, Json] = {
    # Without what came after 1.35: typed models of that version would forget it.
    "slice": changed(
        changed(
            changed(SLICE, "spec/skipNodeOperations", MISSING),
            "spec/devices/0/attributes/numas",
            MISSING,
        ),
        "spec/devices/0/taints",
        [TAINT],
    ),
    "claim": changed(
        changed(
            changed(
                changed(CLAIM, "metadata/ownerReferences", [OWNER]),
                "status/devices/0/conditions/0/message",
                "m",
            ),
            "status/allocation/devices/results/0/skipNodeOperations",
            MISSING,
        ),
        "status/allocation/allocationTimestamp",
        "2026-03-04T05:06:07Z",
    ),
    "class": CLASS,
    "template": changed(TEMPLATE, "metadata/namespace", "ns"),
    "pod": POD
    | {
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "x",
                    "livenessProbe": PROBE,
                    "resources": {
                        "limits": {"example.com/gpu": "1", "cpu": "100m"},
                        "claims": [{"name": "a", "request": "r"}],
                    },
                }
            ],
            "resourceClaims": [
                {"name": "a", "resourceClaimName": "c"},
                {"name": "b", "resourceClaimTemplateName": "t"},
            ],
        },
        "status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "p-b-x"}]},
    },
    "node": NODE
    | {
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "status": {"declaredFeatures": ["F"], "capacity": {"cpu": "4"}},
    },
}
# How each package reads an object of a kind from the server


def _kubernetes(api: Any) -> Read:
    from kubernetes import client

    resource, core = client.ResourceV1Api(api), client.CoreV1Api(api)
    by_kind: Mapping[str, Callable[[str, str], Any]] = {
        "ResourceSlice": lambda _, name: resource.read_resource_slice(name),
        "DeviceClass": lambda _, name: resource.read_device_class(name),
        "ResourceClaim": lambda ns, name: resource.read_namespaced_resource_claim(name, ns),
        "ResourceClaimTemplate": (
            lambda ns, name: resource.read_namespaced_resource_claim_template(name, ns)
        ),
        "Pod": lambda ns, name: core.read_namespaced_pod(name, ns),
        "Node": lambda _, name: core.read_node(name),
    }
    return lambda obj: by_kind[obj["kind"]](*_place(obj))


def _lightkube(api: Any) -> Read:
    from lightkube.resources import core_v1, resource_v1

    def read(obj: Json) -> Any:
        module = core_v1 if obj["apiVersion"] == "v1" else resource_v1
        namespace, name = _place(obj)
        return api.get(getattr(module, obj["kind"]), name, **_namespaced(namespace))

    return read


def _lightkube_generic(api: Any) -> Read:
    from lightkube import generic_resource as generic

    def read(obj: Json) -> Any:
        namespace, name = _place(obj)
        make = generic.create_namespaced_resource if namespace else generic.create_global_resource
        group, _, version = obj["apiVersion"].rpartition("/")
        plural = obj["kind"].lower() + ("es" if obj["kind"].endswith("s") else "s")
        resource = make(group, version, obj["kind"], plural)
        return api.get(resource, name, **_namespaced(namespace))

    return read


def _kr8s(api: Any) -> Read:
    def read(obj: Json) -> Any:
        namespace, name = _place(obj)
        kind = f"{obj['kind']}.{obj['apiVersion']}" if "/" in obj["apiVersion"] else obj["kind"]
        (found,) = api.get(kind, name, **_namespaced(namespace))
        return found

    return read


def _place(obj: Json) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _namespaced(namespace: str) -> Json:
    return {"namespace": namespace} if namespace else {}


READERS = {
    "kubernetes": (clients.kubernetes_api, _kubernetes),
    "lightkube": (clients.lightkube_api, _lightkube),
    "lightkube generic": (clients.lightkube_api, _lightkube_generic),
    "kr8s": (clients.kr8s_api, _kr8s),
}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Iterator[tuple[ApiServer, Read]]:
    server = ApiServer()
    server.seed(*OBJECTS.values())
    opened, read = READERS[request.param]
    with HttpApiServer(server) as shell, opened(shell.url) as api:
        yield server, read(api)


def test_objects_read_by_clients(reader: tuple[ApiServer, Read]) -> None:
    """Typed or not, every object decodes to what its JSON decodes to, and survives."""
    server, read = reader
    for name, obj in OBJECTS.items():
        resource = {"ResourceSlice": "resourceslices", "DeviceClass": "deviceclasses"}.get(
            obj["kind"], obj["kind"].lower() + "s"
        )
        stored = server.find(resource, *_place(obj))
        typed = read(obj)
        before = repr(typed)
        plain = to_plain(typed)
        assert wire.decode(plain) == wire.decode(stored), name
        assert json.loads(json.dumps(plain)) == plain
        assert repr(typed) == before
        # Beyond what is decoded: everything that the server has.
        assert plain == stored, name


def test_lists_of_kubernetes() -> None:
    """Items of a list lack apiVersion and kind; they are added, the list is unfolded."""
    from kubernetes import client

    server = ApiServer()
    server.seed(OBJECTS["slice"], OBJECTS["claim"], OBJECTS["pod"])
    with HttpApiServer(server) as shell, clients.kubernetes_api(shell.url) as api:
        slices = client.ResourceV1Api(api).list_resource_slice()
        claims = client.ResourceV1Api(api).list_resource_claim_for_all_namespaces()
        pods = client.CoreV1Api(api).list_pod_for_all_namespaces()
    for found, obj in ((slices, "slice"), (claims, "claim"), (pods, "pod")):
        expected = wire.decode(
            server.find(OBJECTS[obj]["kind"].lower() + "s", *_place(OBJECTS[obj]))
        )
        found.items[0].kind = found.items[0].api_version = None
        assert wire.decode(to_plain(found.items[0])) == expected
        (entry,) = wire.iter_objects(to_plain(found))
        assert wire.decode(entry.data) == expected


def test_lists_of_lightkube() -> None:
    """Classes of resources know their kind, models do not."""
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import Node
    from lightkube.resources.resource_v1 import ResourceClaim

    plain = to_plain(Node(metadata=ObjectMeta(name="n")))
    assert plain == NODE
    typed = ResourceClaim.from_dict(
        {
            name: value
            for name, value in OBJECTS["claim"].items()
            if name not in ("apiVersion", "kind")
        }
    )
    assert to_plain(typed) == OBJECTS["claim"]
    assert to_plain(ObjectMeta(name="n")) == {"name": "n"}


# Made by hand


def test_objects_of_kubernetes_made_by_hand() -> None:
    """What is None is dropped, what is empty stays, opaque data is not looked into."""
    from kubernetes import client

    parameters = {"kind": "Config", "nothing": None, "list": [None, {"attribute_map": 1}]}
    opaque = client.V1OpaqueDeviceConfiguration(driver="d", parameters=parameters)
    typed = client.V1DeviceClass(
        metadata=client.V1ObjectMeta(name="c", labels={}, creation_timestamp=NEW_YEAR),
        spec=client.V1DeviceClassSpec(
            config=[client.V1DeviceClassConfiguration(opaque=opaque)], selectors=[]
        ),
    )
    assert to_plain(typed) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "c", "labels": {}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "config": [{"opaque": {"driver": "d", "parameters": parameters}}],
            "selectors": [],
        },
    }


@pytest.mark.parametrize(
    ("name", "api_version", "kind"),
    [
        ("V1Node", "v1", "Node"),
        ("V1Pod", "v1", "Pod"),
        ("V1beta1ResourceSlice", "resource.k8s.io/v1beta1", "ResourceSlice"),
        ("V1beta2ResourceClaimTemplate", "resource.k8s.io/v1beta2", "ResourceClaimTemplate"),
        ("ResourceV1ResourceClaim", "resource.k8s.io/v1", "ResourceClaim"),
        ("V1alpha3DeviceTaintRule", "resource.k8s.io/v1alpha3", "DeviceTaintRule"),
        ("V1alpha3PodSchedulingContext", "resource.k8s.io/v1alpha3", "PodSchedulingContext"),
        ("V1Deployment", None, None),
        ("V1beta9ResourceSlice", None, None),
        ("Version", None, None),
    ],
)
def test_kinds_by_the_names_of_models(name: str, api_version: str | None, kind: str | None) -> None:
    """The name of a model tells version and kind, the group is the one that has both."""
    names = {"api_version": "apiVersion", "kind": "kind", "metadata": "metadata"}
    body = {"attribute_map": names, "api_version": None, "kind": None, "metadata": {"name": "x"}}
    model = type(name, (), body)
    expected = {"apiVersion": api_version, "kind": kind} if kind else {}
    assert to_plain(model()) == {"metadata": {"name": "x"}} | expected
    del names["kind"]  # a part of an object, such as CoreV1ResourceClaim
    assert "kind" not in to_plain(model())


NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NEW_YEAR, "2026-01-01T00:00:00Z"),
        (NEW_YEAR.replace(microsecond=1500), "2026-01-01T00:00:00.001500Z"),
        (NEW_YEAR.astimezone(timezone(timedelta(hours=5, minutes=30))), "2026-01-01T00:00:00Z"),
        (date(2026, 1, 1), "2026-01-01"),
    ],
)
def test_times(moment: date, text: str) -> None:
    """Times are written in UTC, as the API server does."""
    assert to_plain({"metadata": {"a": moment, "b": [moment]}}) == {
        "metadata": {"a": text, "b": [text]}
    }


def test_yaml() -> None:
    """YAML makes times of what looks like one; they become text again."""
    text = "metadata: {name: a, creationTimestamp: 2026-01-01T00:00:00Z}\nkind: Node"
    assert to_plain(yaml.safe_load(text)) == {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "kind": "Node",
    }


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), json_values))
def test_mappings_stay_as_they_are(obj: Json) -> None:
    """A plain mapping comes back equal, null and all, and shares nothing."""
    before = deepcopy(obj)
    plain = to_plain(MappingProxyType(obj))
    assert plain == obj
    _clear(plain)
    assert obj == before


def _clear(value: Any) -> None:
    if isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            _clear(entry)
        value.clear()


WEST = timezone(timedelta(hours=-5))


class Color(Enum):
    RED = "red"


def test_other_values() -> None:
    """Tuples are lists, members of enumerations are their values, objects may be nested."""
    from kubernetes import client

    meta = client.V1ObjectMeta(name="x")
    assert to_plain({"a": (1, Color.RED), "metadata": meta}) == {
        "a": [1, "red"], "metadata": {"name": "x"},
    }  # fmt: skip


@attrs.frozen
class Stranger:
    a: int


@pytest.mark.parametrize("obj", [None, 1, "text", [], Stranger(1), dict, object()])
def test_what_is_no_object(obj: Any) -> None:
    """Only mappings and objects of client packages are objects."""
    with pytest.raises(MalformedObjectError) as raised:
        to_plain(obj)
    assert raised.value.path == ""


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"x", "JSON has no bytes"),
        ({1}, "JSON has no set"),
        (Stranger(1), "JSON has no Stranger"),
        (datetime(2026, 1, 1), "is a time without a time zone"),
        (datetime.max.replace(tzinfo=WEST), "is a time that UTC has no year for"),
        (float("nan"), "JSON has no nan"),
        (float("-inf"), "JSON has no -inf"),
        ({1: "one"}, "has a member whose name is no text: 1"),
    ],
)
def test_what_json_does_not_have(value: Any, problem: str) -> None:
    """The error tells the object and the way to the value."""
    obj = {"kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
    with pytest.raises(MalformedObjectError) as raised:
        to_plain(obj | {"spec": {"list": [1, {"x": value}]}})
    error = raised.value
    assert (error.kind, error.name, error.path) == ("Pod", "b/a", "spec.list[1].x")
    assert error.problem == problem


def test_what_contains_itself() -> None:
    """As YAML can say it: an error, too."""
    obj: Json = {"kind": "Pod", "metadata": {"name": "a"}}
    obj["spec"] = obj
    with pytest.raises(MalformedObjectError, match="nested too deep"):
        to_plain(obj)


def test_faults_in_typed_objects() -> None:
    """The names in the error are those of JSON; the kind may come from the type."""
    from kubernetes import client

    meta = client.V1ObjectMeta(name="a", creation_timestamp=datetime(2026, 1, 1))
    with pytest.raises(MalformedObjectError) as raised:
        to_plain(client.V1Node(metadata=meta))
    error = raised.value
    assert (error.kind, error.name, error.path) == ("Node", "a", "metadata.creationTimestamp")
