"""Tools to test allocation and scheduling, for this library and for embedders.

* ``problem``: one allocation problem as a value;
* ``brute_force``: the slow twin of the allocator, which tries everything in order;
* ``checker``: is an allocation right, told by the rules alone;
* ``strategies``: Hypothesis strategies for small problems (needs the extra "testing");
* ``laws``: what holds of every allocator, as functions that raise AssertionError;
* ``api_server``: an API server in memory, with ``watch``, ``faults`` and ``http_api``
  around it (needs the extra "testing");
* ``claim_controller``: doubles of the controllers that look after claims.

What may live here: nothing that the library itself needs. Only ``strategies`` and
``supply_strategies`` import Hypothesis, only ``patching`` imports jsonpatch. No socket is
opened and no clock is read.
"""
