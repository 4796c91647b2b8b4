"""A numpy reference of every kernel: the oracle of the tests and the baseline of the benchmarks.

Each module here states with numpy alone what a compiled kernel computes, as fast as plain numpy
goes. A speed-up that is measured against it is therefore a speed-up over what a careful user would
otherwise have written. Nothing in the rest of the package imports it.
"""
