"""Tools to test allocation, for this library and for embedders.

* ``problem``: one allocation problem as a value;
* ``brute_force``: the slow twin of the allocator, which tries everything in order;
* ``checker``: is an allocation right, told by the rules alone;
* ``strategies``: Hypothesis strategies for small problems (needs the extra "testing");
* ``laws``: what holds of every allocator, as functions that raise AssertionError.

What may live here: nothing that the library itself needs. Only ``strategies`` and
``supply_strategies`` import Hypothesis.
"""
