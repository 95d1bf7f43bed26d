# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Hashes of sources, as parts of keys of caches. Included, it defines
# gdn_hash_sources; run by `cmake -P`, it writes the header of one hash.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.24)
  file(STRINGS ${LIST} sources)
  set(hashes "${BUILD}\n")
  foreach(source IN LISTS sources)
    file(SHA256 ${source} hash)
    string(APPEND hashes "${source} ${hash}\n")
  endforeach()
  string(SHA256 hash "${hashes}")
  file(CONFIGURE OUTPUT ${OUT} CONTENT
"// Made by GDNSourceHash.cmake of the files in ${LIST}.
static constexpr char @NAME@[] =
    \"@hash@\";
" @ONLY)
  return()
endif()

# gdn_hash_sources(<target> <name> AHEAD <paths>...)
#
# Makes <name>.h for <target>: a constant of that name, which begins with a small
# letter there, is the hash of all sources of the compiler but those below the paths,
# which are relative to lib and to include/gdn. A new file is part of it.
function(gdn_hash_sources target name)
  cmake_parse_arguments(ARG "" "" "AHEAD" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
    ${CMAKE_SOURCE_DIR}/lib/* ${CMAKE_SOURCE_DIR}/include/gdn/*)
  foreach(path IN LISTS ARG_AHEAD)
    string(REPLACE "." "[.]" pattern ${path})
    set(before ${sources})
    list(FILTER sources EXCLUDE REGEX "^(lib|include/gdn)/${pattern}(/|$)")
    if(before STREQUAL sources)
      message(FATAL_ERROR "gdn_hash_sources: ${path} is no source of the compiler")
    endif()
  endforeach()
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${name}.txt)
  list(JOIN sources "\n" lines)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  string(REGEX REPLACE "^Sources" "sources" constant ${name})
  set(header ${CMAKE_CURRENT_BINARY_DIR}/${name}.h)
  set(build "${CMAKE_BUILD_TYPE},${CMAKE_CXX_COMPILER_ID},${CMAKE_CXX_COMPILER_VERSION},${GDN_SANITIZE}")
  string(REPLACE ";" "," build "${build}")
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DLIST=${list} -DOUT=${header} -DNAME=${constant} -DBUILD=${build}
      -P ${CMAKE_SOURCE_DIR}/tools/cmake/GDNSourceHash.cmake
    DEPENDS ${sources} ${list}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMENT "" VERBATIM)
  target_sources(${target} PRIVATE ${header})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
