# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds what the runtime is built with. Says at once what is missing, and which
# packages of Debian have it.

set(_gdn_missing)
set(_gdn_packages)
macro(gdn_need found what package)
  if(NOT ${found})
    string(APPEND _gdn_missing "\n  ${what}")
    list(APPEND _gdn_packages ${package})
  endif()
endmacro()

if(GDN_LINKER)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=${GDN_LINKER} GDN_LINKER_WORKS)
  gdn_need(GDN_LINKER_WORKS
    "the linker of -fuse-ld=${GDN_LINKER} (-DGDN_LINKER= takes the compiler's own)" lld)
endif()
find_package(Threads REQUIRED) # which the target of oneTBB links
find_package(TBB QUIET CONFIG)
gdn_need(TBB_FOUND "TBBConfig.cmake of oneTBB" libtbb-dev)
# Headers of FlatBuffers and xxHash: no library is linked for either.
find_program(GDN_FLATC flatc)
gdn_need(GDN_FLATC "the program flatc" flatbuffers-compiler)
find_path(GDN_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h)
gdn_need(GDN_FLATBUFFERS_INCLUDE_DIR "the header flatbuffers/flatbuffers.h" libflatbuffers-dev)
find_path(GDN_XXHASH_INCLUDE_DIR xxhash.h)
gdn_need(GDN_XXHASH_INCLUDE_DIR "the header xxhash.h" libxxhash-dev)

if(_gdn_missing)
  unset(GDN_LINKER_WORKS CACHE) # to be looked for again
  list(JOIN _gdn_packages " " _gdn_packages)
  message(FATAL_ERROR "gdn: needed for the build, and not found:${_gdn_missing}\n"
    "On Debian: apt install ${_gdn_packages}")
endif()

# Generated code asserts the version of the headers it was made for, but only
# while it compiles; say it here with names.
file(STRINGS ${GDN_FLATBUFFERS_INCLUDE_DIR}/flatbuffers/base.h _gdn_fb
  REGEX "define FLATBUFFERS_VERSION_(MAJOR|MINOR|REVISION) [0-9]+")
string(REGEX REPLACE "[^0-9;]" "" _gdn_fb "${_gdn_fb}")
list(JOIN _gdn_fb "." _gdn_fb_headers)
execute_process(COMMAND ${GDN_FLATC} --version
  OUTPUT_VARIABLE _gdn_fb_flatc OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX MATCH "[0-9]+[.][0-9]+[.][0-9]+" _gdn_fb_flatc "${_gdn_fb_flatc}")
if(NOT _gdn_fb_headers STREQUAL _gdn_fb_flatc)
  message(FATAL_ERROR "flatc is version ${_gdn_fb_flatc}, but ${GDN_FLATBUFFERS_INCLUDE_DIR} has headers of ${_gdn_fb_headers}")
endif()
