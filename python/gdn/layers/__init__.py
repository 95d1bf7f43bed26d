# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of models, and what engines need to run them."""
