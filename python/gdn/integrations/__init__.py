# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways into other libraries. Each module needs the library that it is for."""
