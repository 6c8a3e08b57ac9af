"""Values whose types are not known when an expression is compiled.

Every form with every value: the fast code and the one that counts costs agree and
raise nothing but the two errors.
"""

import pytest

from support.expressions import COMPILE, outcome

VALUES = (
    "5",
    "'a'",
    "true",
    "null",
    "1.5",
    "2u",
    "b'a'",
    "[1]",
    "{1:2}",
    "{'a':1}",
    "type(1)",
    "duration('1s')",
    "quantity('1')",
    "semver('1.0.0')",
    "optional.none()",
    "optional.of(1)",
)

FORMS = (
    "dyn({})[0] == 1",
    "dyn({}).a == 1",
    "has(dyn({}).a)",
    "dyn({}).exists(x, true)",
    "dyn({}).all(x, y, true)",
    "dyn({}).map(x, x) == []",
    "dyn({}) ? true : false",
    "!dyn({})",
    "-dyn({}) == 1",
    "dyn({}) && device.allowMultipleAllocations",
    "device.allowMultipleAllocations || dyn({})",
    "dyn({})[?0].hasValue()",
    "dyn({}).?a.hasValue()",
    "dyn({}).orValue(1) == 1",
    "dyn({}).optMap(x, x).hasValue()",
    "dyn({}).startsWith('a')",
    "dyn({}) < 3",
    "dyn({}) + 3 == 3",
    "dyn({}) in [1]",
    "1 in dyn({})",
    "dyn({}).size() == 1",
    "size(dyn({})) == 1",
    "cel.bind(x, dyn({}), x == x[0] || x.b)",
    "string(dyn({})) == 'a'",
    "dyn({}).isGreaterThan(quantity('1'))",
    "[1,2].exists(x, dyn({}))",
    "[1,2].filter(x, dyn({})).size() == 2",
    "[1,2].exists_one(x, dyn({}))",
    "[dyn({})] == [1]",
    "{{dyn({}): 1}} == {{}}",
    "dyn({}) == device.allowMultipleAllocations",
    "dyn({}) != device.allowMultipleAllocations",
    "dyn({}) == device.driver",
    "dyn({})",
    "dyn({}).matches('a')",
    "[dyn({})][0]",
    "[[dyn({})]].exists(x, x[0])",
    "dyn({}).sortBy(x, x) == []",
    "dyn({}).includes(1)",
    "device.attributes['a.b'].includes(dyn({}))",
    "[?dyn({})] == []",
    "{{?'a': dyn({})}} == {{}}",
    "device.attributes[dyn({})].a == 1",
    "dyn({}) in device.attributes['a.b']",
    "dyn({}) in device.attributes",
)


@pytest.mark.parametrize("form", FORMS)
def test_both_codes_agree(form: str) -> None:
    outcomes = [outcome(form.format(value)) for value in VALUES]
    assert set(outcomes) != {COMPILE}
