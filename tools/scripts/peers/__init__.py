# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Test suites of other libraries, run against the functions of gdn.ops: peer_suites.py."""
