# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefix caches of hybrid models on generated traces, simulated with measured kernel times.

docs/design/20261128-prefix-cache-simulation.md describes the model and the policies.
"""
