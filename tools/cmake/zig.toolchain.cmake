# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The toolchain of wheels: zig's clang with the headers and stubs of an old glibc, and
# with libc++ inside of what is linked. It compiles for either processor on any of them.
#   GDN_ZIG        the program zig
#   GDN_PROCESSOR  x86_64 or aarch64
#   GDN_GLIBC      the oldest glibc that the result runs with, 2.28
# Why: docs/design/20261126-wheels.md.

set(GDN_PROCESSOR x86_64 CACHE STRING "x86_64 or aarch64")
set(GDN_GLIBC 2.28 CACHE STRING "The oldest glibc")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GDN_ZIG GDN_PROCESSOR GDN_GLIBC)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${GDN_PROCESSOR})
set(CMAKE_C_COMPILER ${GDN_ZIG} cc -target ${GDN_PROCESSOR}-linux-gnu.${GDN_GLIBC})
set(CMAKE_CXX_COMPILER ${GDN_ZIG} c++ -target ${GDN_PROCESSOR}-linux-gnu.${GDN_GLIBC})

# The archiver is a word behind zig, which CMAKE_AR cannot say.
foreach(language C CXX)
  set(CMAKE_${language}_ARCHIVE_CREATE "${GDN_ZIG} ar qcD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_APPEND "${GDN_ZIG} ar qD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "${GDN_ZIG} ranlib -D <TARGET>")
  # Paths of the machine that builds are nowhere in the result.
  set(CMAKE_${language}_FLAGS_INIT
    "-ffunction-sections -fdata-sections -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")
endforeach()
foreach(kind SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,--gc-sections -s")
endforeach()

# Libraries and headers of this machine are of another glibc, if not of another processor.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/none)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE NEVER)
set(GDN_LINKER "" CACHE STRING "zig links by itself")
