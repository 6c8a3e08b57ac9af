"""Named formats: which texts have them, and how many problems the others have."""

import base64
import datetime
import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.cel.formats import FORMATS, named_format
from dra_core.errors import CelValueError


def problems(name: str, text: str) -> int:
    """How many problems a text has in a format."""
    found = FORMATS[name].validate(text)
    assert found is None or (found and all(found))
    return 0 if found is None else len(found)


L63, L64 = "a" * 63, "a" * 64


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("dns1123Label", "a-b", 0),
        ("dns1123Label", "1", 0),
        ("dns1123Label", L63, 0),
        ("dns1123Label", "A_B", 1),
        ("dns1123Label", "", 1),
        ("dns1123Label", "-a", 1),
        ("dns1123Label", "a-", 1),
        ("dns1123Label", "a.b", 1),
        ("dns1123Label", "a\n", 1),
        ("dns1123Label", L64, 1),
        ("dns1123Label", L64.upper(), 2),
        ("dns1123Label", "é" * 32, 2),
        ("dns1123Subdomain", "a.b-c.1", 0),
        ("dns1123Subdomain", ".".join(["a"] * 127), 0),
        ("dns1123Subdomain", L64, 0),
        ("dns1123Subdomain", ".".join(["a"] * 128), 1),
        ("dns1123Subdomain", "a..b", 1),
        ("dns1123Subdomain", "a.", 1),
        ("dns1123Subdomain", "", 1),
        ("dns1123Subdomain", "A" * 254, 2),
        ("dns1035Label", "a1-b", 0),
        ("dns1035Label", "1a", 1),
        ("dns1035Label", "a-", 1),
        ("dns1035Label", "1" * 64, 2),
        ("qualifiedName", "MyName", 0),
        ("qualifiedName", "my.name_x-1", 0),
        ("qualifiedName", "example.com/MyName", 0),
        ("qualifiedName", "", 2),
        ("qualifiedName", "/a", 1),
        ("qualifiedName", "a/", 2),
        ("qualifiedName", "/", 3),
        ("qualifiedName", "Example.com/a", 1),
        ("qualifiedName", "a/b/c", 1),
        ("qualifiedName", L64, 1),
        ("qualifiedName", "-" * 64, 2),
        ("qualifiedName", "A" * 254 + "/-", 3),
        ("labelValue", "", 0),
        ("labelValue", "My_value.1", 0),
        ("labelValue", L63, 0),
        ("labelValue", "-a", 1),
        ("labelValue", L64, 1),
        ("labelValue", "-" * 64, 2),
        ("dns1123LabelPrefix", "my-label-prefix-", 0),
        ("dns1123LabelPrefix", "a", 0),
        ("dns1123LabelPrefix", "A-", 0),
        ("dns1123LabelPrefix", "a--", 0),
        ("dns1123LabelPrefix", "A-b", 1),
        ("dns1123LabelPrefix", "a.b-", 1),
        ("dns1123LabelPrefix", "a.-", 0),
        ("dns1123SubdomainPrefix", "mysubdomain.prefix.-", 0),
        ("dns1123SubdomainPrefix", "a.b", 0),
        ("dns1123SubdomainPrefix", "a..b-", 1),
        ("dns1035LabelPrefix", "my-label-prefix-", 0),
        ("dns1035LabelPrefix", "1-", 0),
        ("dns1035LabelPrefix", "1a-", 1),
        ("uri", "http://example.com", 0),
        ("uri", "/path", 0),
        ("uri", "../x", 1),
        ("uri", "", 1),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", 0),
        ("uuid", "123E4567E89B12D3A456426614174000", 0),
        ("uuid", "123e4567-e89b12d3-a456426614174000", 0),
        ("uuid", "18db0e85-99e9-c746-8531-ffeb86328b39", 0),
        ("uuid", "{123e4567-e89b-12d3-a456-426614174000}", 1),
        ("uuid", "123e4567-e89b-12d3-a456-42661417400", 1),
        ("uuid", "123e4567-e89b-12d3-a456-4266141740000", 1),
        ("uuid", "123e4567--e89b-12d3-a456-426614174000", 1),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000\n", 1),
        ("uuid", "123g4567-e89b-12d3-a456-426614174000", 1),
        ("uuid", "", 1),
        ("byte", "aGVsbG8=", 0),
        ("byte", "aGVsbA==", 0),
        ("byte", "AAAA", 0),
        ("byte", "+/+/", 0),
        ("byte", "", 1),
        ("byte", "====", 1),
        ("byte", "A===", 1),
        ("byte", "AAA", 1),
        ("byte", "AA=A", 1),
        ("byte", "AA_-", 1),
        ("byte", "AAAA\n", 1),
        ("date", "2021-01-01", 0),
        ("date", "2020-02-29", 0),
        ("date", "0000-02-29", 0),
        ("date", "9999-12-31", 0),
        ("date", "2021-02-29", 1),
        ("date", "2021-13-01", 1),
        ("date", "2021-00-01", 1),
        ("date", "2021-01-00", 1),
        ("date", "2021-1-1", 1),
        ("date", "21-01-01", 1),
        ("date", "2021-01-01 ", 1),
        ("date", "２021-01-01", 1),
        ("date", "", 1),
        ("datetime", "2021-01-01T00:00:00Z", 0),
        ("datetime", "2021-01-01t23:59:59z", 0),
        ("datetime", "2021-01-01T00:00:00.123456789012Z", 0),
        ("datetime", "2021-01-01T00:00:00,5+05:30", 0),
        ("datetime", "2021-01-01T00:00:00-99:99", 0),
        ("datetime", "2021-01-01T00:00:00ZTail", 0),
        ("datetime", "2021-01-01T00:00:00", 1),
        ("datetime", "2021-01-01T24:00:00Z", 1),
        ("datetime", "2021-01-01T00:60:00Z", 1),
        ("datetime", "2021-01-01T00:00:60Z", 1),
        ("datetime", "2021-01-01T00:00:00.Z", 1),
        ("datetime", "2021-01-01T00:00:00+0530", 1),
        ("datetime", "2021-01-01T0:00:00Z", 1),
        ("datetime", "2021-01-01 00:00:00Z", 1),
        ("datetime", "2021-02-30T00:00:00Z", 1),
        ("datetime", "2021-01-01", 1),
        ("datetime", "T", 1),
        ("datetime", "", 1),
    ],
)
def test_problems(name: str, text: str, expected: int) -> None:
    """A text has a format, or as many problems as the reference would report."""
    assert problems(name, text) == expected


@pytest.mark.parametrize(
    "name", ["dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix"]
)
def test_lone_dash_is_an_error(name: str) -> None:
    """A dash alone makes the check of a prefix fail, as in the reference."""
    with pytest.raises(CelValueError):
        FORMATS[name].validate("-")


def test_names() -> None:
    """Formats are found by the names of the CEL library, in its spelling only."""
    assert list(FORMATS) == [
        "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName",
        "dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue",
        "uri", "uuid", "byte", "date", "datetime",
    ]  # fmt: skip
    for name, found in FORMATS.items():
        assert named_format(name) is found
        assert found.name == name
        assert found.max_regex_size > 0
    assert named_format("uuid") is not None
    assert named_format("UUID") is None
    assert named_format("") is None


def test_formats_are_values() -> None:
    """A format can be a key, equal to itself only."""
    assert len(set(FORMATS.values())) == len(FORMATS)


@given(st.text(alphabet="aA1-._/", max_size=8))
def test_labels_agree_with_their_patterns(text: str) -> None:
    """Short texts have a format exactly if the pattern of the RFC or of labels matches."""
    label = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
    name = "[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
    subdomain = rf"{label}(?:\.{label})*"
    patterns = {
        "dns1123Label": label,
        "dns1123Subdomain": subdomain,
        "dns1035Label": "[a-z](?:[-a-z0-9]*[a-z0-9])?",
        "labelValue": f"(?:{name})?",
        "qualifiedName": f"(?:{subdomain}/)?{name}",
    }
    for format_name, pattern in patterns.items():
        assert (problems(format_name, text) == 0) == bool(re.fullmatch(pattern, text))


@given(st.binary(min_size=1, max_size=20))
def test_base64_is_bytes(data: bytes) -> None:
    """What base64 encodes has the format "byte"; without its last character it has not."""
    text = base64.b64encode(data).decode()
    assert problems("byte", text) == 0
    assert problems("byte", text[:-1]) == 1


@given(st.uuids(), st.sampled_from([str, str.upper, lambda text: text.replace("-", "")]))
def test_every_uuid_is_one(value: uuid.UUID, spelled: object) -> None:
    """A UUID has the format in either case, with dashes or without."""
    assert callable(spelled)
    assert problems("uuid", spelled(str(value))) == 0


@given(st.datetimes(), st.sampled_from(["Z", "+00:00", "-11:30"]))
def test_every_time_is_one(value: datetime.datetime, zone: str) -> None:
    """What isoformat() prints has the formats "date" and, with a zone, "datetime"."""
    assert problems("date", value.date().isoformat()) == 0
    assert problems("datetime", value.isoformat() + zone) == 0
