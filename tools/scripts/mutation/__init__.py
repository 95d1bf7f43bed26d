# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of mutate.py: C++ as tokens, sites of faults, the clone with all faults in it,
and the suites that have to notice them."""
