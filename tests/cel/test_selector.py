"""The cache, what a selector reads, its errors, and the faults that other schedulers had."""

import pickle
import threading

import attrs
import pytest

from dra_core.api.objects import AttributeValue, Device
from dra_core.cel.selector import SelectorCache
from dra_core.errors import DraError, SelectorCompileError, SelectorEvaluationError
from support.devices import device
from support.expressions import CACHE, DEVICE, DRIVER, FAILS, outcome, problem

A = 'device.attributes["gpu.example.com"]'


# --- the cache ---------------------------------------------------------------------------


def test_an_expression_compiles_once() -> None:
    """The same expression gives the same selector."""
    cache = SelectorCache()
    first = cache.compile("true")
    assert cache.compile("true") is first
    assert (first.expression, len(cache)) == ("true", 1)


def test_the_cache_is_bounded() -> None:
    """The expression that was not asked for longest goes first."""
    cache = SelectorCache(max_entries=2)
    one, two = cache.compile("1 == 1"), cache.compile("2 == 2")
    assert cache.compile("1 == 1") is one
    cache.compile("3 == 3")
    assert len(cache) == 2
    assert cache.compile("1 == 1") is one
    assert cache.compile("2 == 2") is not two


def test_a_cache_needs_room() -> None:
    """A cache for nothing is a mistake of the caller."""
    with pytest.raises(ValueError, match="at least one"):
        SelectorCache(max_entries=0)


def test_a_bad_expression_is_remembered() -> None:
    """It is refused again and not compiled again; every time with an error of its own."""
    cache = SelectorCache()
    errors = []
    for _ in range(2):
        with pytest.raises(SelectorCompileError) as caught:
            cache.compile("1 +")
        errors.append(caught.value)
    assert attrs.astuple(errors[0]) == attrs.astuple(errors[1])
    assert errors[0] is not errors[1]
    assert len(cache) == 1


def test_threads_share_a_cache() -> None:
    """Many threads at once get working selectors."""
    cache = SelectorCache(max_entries=3)
    found: list[bool] = []

    def work(start: int) -> None:
        for i in range(30):
            number = (start + i) % 5
            selector = cache.compile(f"{A}.index == {number}")
            found.append(selector.matches(DRIVER, DEVICE) == (number == 3))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 120


# --- what is read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "driver", "multiple", "attributes", "capacity"),
    [
        ("true", False, False, (), ()),
        ("device.driver == 'x'", True, False, (), ()),
        ("device.allowMultipleAllocations", False, True, (), ()),
        (
            "cel.bind(d, device.attributes['d'], d.b == 1 && d['a'] == 1 && d.b == 2)",
            False, False, (("d", "b"), ("d", "a")), (),
        ),
        ("device.capacity['d'].x == quantity('1')", False, False, (), (("d", "x"),)),
        ("has(device.attributes['d'].x)", False, False, (("d", "x"),), ()),
        ("device.attributes['d'].?x.hasValue()", False, False, (("d", "x"),), ()),
        ("'x' in device.attributes['d']", False, False, (("d", "x"),), ()),
        ("cel.bind(a, device.attributes, a['d'].x == 1)", False, False, (("d", "x"),), ()),
        ("cel.bind(d, device.attributes['d'], d.x == 1)", False, False, (("d", "x"),), ()),
        ("device.attributes['d'].all(k, k != '')", True, False, None, ()),
        ("'d' in device.attributes", True, False, None, ()),
        ("device.attributes[device.driver].x == 1", True, False, None, ()),
        ("device.capacity.size() == 1", True, False, (), None),
        ("dyn(device).driver == 'x'", True, True, None, None),
    ],
)  # fmt: skip
def test_what_is_read(
    expression: str, driver: bool, multiple: bool,
    attributes: tuple[tuple[str, str], ...] | None, capacity: tuple[tuple[str, str], ...] | None,
) -> None:  # fmt: skip
    """What an expression reads of a device is known from its text."""
    reads = CACHE.compile(expression).reads
    assert reads.driver is driver
    assert reads.allow_multiple is multiple
    assert reads.attributes == attributes
    assert reads.capacity == capacity


def test_equal_keys_mean_equal_results() -> None:
    """Only what is read is in the key; types are told apart; amounts count, not their form."""
    selector = CACHE.compile(f"{A}.x == 1 && device.capacity['gpu.example.com'].m == quantity('1')")
    keys = {
        name: selector.values_read(DRIVER, on)
        for name, on in {
            "int": device({"x": 1, "y": 2}, {"m": "1"}),
            "same": device({"gpu.example.com/x": 1}, {"m": "1000m"}),
            "bool": device({"x": True}, {"m": "1"}),
            "text": device({"x": "1"}, {"m": "1"}),
            "other": device({"x": 1}, {"m": "2"}),
            "none": device(),
        }.items()
    }
    assert keys["int"] == keys["same"]
    assert len(set(keys.values())) == 5


def test_the_key_knows_the_driver_where_it_matters() -> None:
    """A bare name means another attribute under another driver."""
    on = device({"x": 1})
    selector = CACHE.compile(f"{A}.x == 1")
    assert selector.values_read(DRIVER, on) != selector.values_read("other", on)
    assert selector.matches(DRIVER, on)
    with pytest.raises(SelectorEvaluationError):
        selector.matches("other", on)


def test_full_names_win() -> None:
    """The full name of an attribute is looked up before the bare one."""
    on = device({"x": 1, "gpu.example.com/x": 2})
    assert outcome(f"{A}.x == 2 && dyn({A}).x == 2 && {A}.size() == 1", on)


# --- devices at fault -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "attribute",
    [
        AttributeValue("", None),
        AttributeValue("version", "1.2"),
        AttributeValue("version", "v1.2.3"),
        AttributeValue("versions", ("1.2.3", "x")),
    ],
)
def test_a_device_at_fault(attribute: AttributeValue) -> None:
    """A missing value or a malformed version makes every selector on the device an error."""
    on = Device(attributes={"x": attribute, "y": AttributeValue("int", 1)})
    for expression in ("true", f"{A}.y == 1", "device.driver == 'x'"):
        assert outcome(expression, on) == FAILS
        selector = CACHE.compile(expression)
        sound = selector.values_read(DRIVER, device({"y": 1}))
        assert selector.values_read(DRIVER, on) != sound
        assert selector.values_read(DRIVER, on) == selector.values_read(DRIVER, on)
    assert "'x'" in problem("true", on).problem


# --- errors -----------------------------------------------------------------------------------


def test_compile_errors_say_where() -> None:
    """Line and column count from one, columns in code points."""
    error = problem("true &&\n  'é' == 1")
    assert isinstance(error, SelectorCompileError)
    assert (error.line, error.column) == (2, 7)
    assert error.expression == "true &&\n  'é' == 1"
    assert "line 2, column 7" in str(error)


@pytest.mark.parametrize(
    ("expression", "line", "column"),
    [
        (f"true &&\n {A}.nosuch == 1", 2, 39),
        (f"{A}.index / 0 == 1", 1, 44),
        (f"{A}.nosuch == 1 && true", 1, 38),
        ("[1].all(x,\n x / 0 == 1)", 2, 4),
        ("[1].map(x, 1 / 0) == [1]", 1, 14),
        (f"cel.bind(x, {A}.nosuch, x == 1)", 1, 50),
        (f"({A}.nosuch == 1 || false) && true", 1, 39),
    ],
)
def test_evaluation_errors_say_where(expression: str, line: int, column: int) -> None:
    """The place is that of the operation that failed, also if others were tried after it."""
    selector = CACHE.compile(expression)
    for evaluate in (selector.matches, selector.evaluate):
        with pytest.raises(SelectorEvaluationError) as caught:
            evaluate(DRIVER, DEVICE)
        assert (caught.value.line, caught.value.column) == (line, column)


def test_evaluation_errors_tell_the_cost() -> None:
    """Where costs are counted, the error has the cost until then."""
    selector = CACHE.compile(f"{A}.nosuch == 'x'")
    with pytest.raises(SelectorEvaluationError) as caught:
        selector.evaluate(DRIVER, DEVICE)
    assert caught.value.cost == 5
    with pytest.raises(SelectorEvaluationError) as caught:
        selector.matches(DRIVER, DEVICE)
    assert caught.value.cost == -1


def test_errors_survive_pickling() -> None:
    """Embedders with worker processes pass errors on."""
    for expression in ("1 +", f"{A}.nosuch == 1"):
        error = problem(expression)
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert attrs.astuple(copy) == attrs.astuple(error)
        assert isinstance(error, DraError)


def test_long_expressions_are_cut_in_messages() -> None:
    """A message stays readable."""
    assert len(str(problem("true && " * 1_000))) < 400


def test_evaluate_counts() -> None:
    """Result and cost, in the reference's units."""
    assert CACHE.compile(f"{A}.index == 3").evaluate(DRIVER, DEVICE) == (True, 5)
    assert CACHE.compile("true").evaluate(DRIVER, DEVICE) == (True, 0)


def test_devices_stay_as_they_are() -> None:
    """Evaluating changes nothing of the device."""
    before = repr(DEVICE)
    for expression in ("true", f"{A}.links.map(l, l + '!').size() == 2", "dyn(device).size() == 4"):
        CACHE.compile(expression).evaluate(DRIVER, DEVICE)
    assert repr(DEVICE) == before


# --- faults that other schedulers had ----------------------------------------------------------


def test_bug_87_missing_attribute() -> None:
    """A missing attribute is an error that names it and says how to guard (k/k#136709)."""
    error = problem(f"{A}.a == 1", device({"b": 1}))
    assert isinstance(error, SelectorEvaluationError)
    assert "no such key" in error.problem
    assert "'a'" in error.problem
    assert "has()" in error.hint
    assert "orValue" in error.hint
    assert error.hint in str(error)
    assert outcome(f"has({A}.a) && {A}.a == 1", device({"b": 1})) is False
    assert outcome(f"{A}.?a.orValue(1) == 1", device({"b": 1})) is True


def test_bug_88_static_estimate_and_run_time_cost() -> None:
    """A cheap pattern passes whatever its estimate; a costly evaluation stops (k/k#129661)."""
    expression = f'{A}.services.matches("[^a]?sym")'
    selector = CACHE.compile(expression)
    assert selector.max_cost == 18
    assert selector.evaluate(DRIVER, device({"services": "asym;sym"})) == (True, 6)
    unbounded = CACHE.compile(f"optional.of({A}.model).value().matches({A}.model)")
    assert unbounded.max_cost > 1_000_000
    assert unbounded.matches(DRIVER, DEVICE)
    numbers = str(list(range(10)))
    costly = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, {numbers}.all(d, {numbers}.all(e,"
    error = problem(costly + " a + b + c + d + e >= 0)))))")
    assert isinstance(error, SelectorEvaluationError)
    assert "costs more than 1,000,000" in error.problem


def test_bug_89_stored_expression_after_a_switch_is_off() -> None:
    """``includes`` and lists evaluate whatever the features (k/k#139395): none is asked."""
    assert outcome(f"{A}.numa.includes(2) && {A}.model.includes('A100')") is True
    assert outcome(f"2 in {A}.numa && !device.allowMultipleAllocations") is True
