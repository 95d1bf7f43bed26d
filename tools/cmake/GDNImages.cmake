# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Images that tests use, compiled through a cache that builds and runs share.

set(_cache $ENV{XDG_CACHE_HOME})
if(NOT _cache)
  set(_cache $ENV{HOME}/.cache)
endif()
set(GDN_IMAGE_CACHE ${_cache}/gdn CACHE PATH
  "Where tests keep what gdn-compile has made; empty: nowhere")

# gdn_add_image(<target> <file> <arguments of gdn-compile>... [DEPENDS <files>...])
#
# A target, part of all, that compiles the file.
function(gdn_add_image target file)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(cache)
  if(GDN_IMAGE_CACHE)
    set(cache --cache=${GDN_IMAGE_CACHE})
  endif()
  add_custom_command(OUTPUT ${file}
    COMMAND gdn-compile ${ARG_UNPARSED_ARGUMENTS} ${cache} -o ${file}
    DEPENDS gdn-compile ${ARG_DEPENDS} VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${file})
endfunction()

# The Python of tests and scripts: that of setup.sh, or the system's.
set(GDN_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python)
if(NOT EXISTS ${GDN_PYTHON})
  set(GDN_PYTHON python3)
endif()

# gdn_add_test_once(<test> FILES <files>... COMMAND <program> <arguments>...)
#
# A test that is not repeated while the files, which are all that decides what it
# does, are what they were when it passed.
function(gdn_add_test_once test)
  cmake_parse_arguments(ARG "" "" "FILES;COMMAND" ${ARGN})
  add_test(NAME ${test}
    COMMAND ${GDN_PYTHON} ${CMAKE_SOURCE_DIR}/tools/scripts/run_once.py
            --cache=${GDN_IMAGE_CACHE} --files ${ARG_FILES} -- ${ARG_COMMAND})
endfunction()
