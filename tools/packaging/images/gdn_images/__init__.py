# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images of gdn that are compiled already. gdn.images.find of the package gdn finds one."""
