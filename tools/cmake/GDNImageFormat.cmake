# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds what reads and writes images: FlatBuffers (headers and flatc, both of
# one version) and xxHash. Headers only: no library is linked for either.

find_program(GDN_FLATC flatc REQUIRED)
find_path(GDN_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)
find_path(GDN_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

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
