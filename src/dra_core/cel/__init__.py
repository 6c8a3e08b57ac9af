"""Selectors: the expression language CEL over a device.

What may live here: nothing; import the modules. ``selector`` is the one that the rest of
the project uses. The way of an expression: ``lexer``, ``parser`` (with ``macros``),
``checker``, ``estimate``, ``literals``, then ``compiler`` or ``accounting``, all put
together by ``program``. The language's functions are rows in the ``library_*`` modules.
"""
