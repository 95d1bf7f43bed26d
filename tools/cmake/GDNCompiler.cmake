# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds MLIR and defines how every compiler library of gdn is built: against
# the shared LLVM and MLIR libraries, with one precompiled header.

# MLIRConfigVersion accepts only an exact major.minor, so the version is
# compared here and not in find_package.
find_package(MLIR REQUIRED CONFIG)
file(STRINGS ${CMAKE_SOURCE_DIR}/LLVM_VERSION GDN_LLVM_MAJOR LIMIT_COUNT 1)
if(NOT LLVM_VERSION_MAJOR EQUAL GDN_LLVM_MAJOR)
  message(FATAL_ERROR "gdn needs LLVM ${GDN_LLVM_MAJOR} (file LLVM_VERSION), found ${LLVM_PACKAGE_VERSION}")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR}) # add_mlir_doc writes below it
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# mlir_tablegen reads directory-level include paths only.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
include_directories(${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include)

# Debian's LLVM has RTTI on and exceptions off. Code that uses a library with
# exceptions (nlohmann/json) turns them on for its own file.
add_library(gdn_compiler_flags INTERFACE)
target_compile_definitions(gdn_compiler_flags INTERFACE
  _GNU_SOURCE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
target_compile_options(gdn_compiler_flags INTERFACE
  -fno-exceptions -ffunction-sections -fdata-sections -fvisibility-inlines-hidden
  -Wall -Wextra -Wno-unused-parameter)
# Archives, in a tool that takes LLVM along (GDN_STATIC, below); lld does not mind
# their order.
file(GLOB llvm_archives ${LLVM_LIBRARY_DIRS}/libMLIR*.a ${LLVM_LIBRARY_DIRS}/libLLVM*.a)
target_link_libraries(gdn_compiler_flags INTERFACE
  "$<IF:$<BOOL:$<TARGET_PROPERTY:GDN_STATIC>>,${llvm_archives},MLIR;LLVM>")
target_link_options(gdn_compiler_flags INTERFACE -Wl,--gc-sections)

add_library(gdn_pch STATIC ${CMAKE_SOURCE_DIR}/lib/pch.cpp)
target_link_libraries(gdn_pch PUBLIC gdn_compiler_flags)
target_precompile_headers(gdn_pch PRIVATE ${CMAKE_SOURCE_DIR}/lib/pch.h)
add_library(gdn_kernels_pch STATIC ${CMAKE_SOURCE_DIR}/lib/pch_kernels.cpp)
target_link_libraries(gdn_kernels_pch PUBLIC gdn_compiler_flags)
target_precompile_headers(gdn_kernels_pch PRIVATE
  ${CMAKE_SOURCE_DIR}/lib/pch_kernels.h)

add_library(gdn_tests_pch STATIC EXCLUDE_FROM_ALL
  ${CMAKE_SOURCE_DIR}/test/Unit/pch_tests.cpp)
target_link_libraries(gdn_tests_pch PUBLIC gdn_compiler_flags)
# As its users.
target_compile_options(gdn_tests_pch PRIVATE $<$<CONFIG:Release>:-O0>)
target_compile_definitions(gdn_tests_pch PRIVATE GTEST_HAS_PTHREAD=1)
target_precompile_headers(gdn_tests_pch PRIVATE
  ${CMAKE_SOURCE_DIR}/test/Unit/pch_tests.h)

# gdn_use_precompiled_header(<target> <whether that of kernels>)
function(gdn_use_precompiled_header target kernels)
  if(kernels)
    target_precompile_headers(${target} REUSE_FROM gdn_kernels_pch)
  else()
    target_precompile_headers(${target} REUSE_FROM gdn_pch)
  endif()
endfunction()

# gdn_add_library(<name> <sources>... [DEPENDS <tablegen targets>...]
#                 [LINK_LIBS <libraries>...] [KERNELS])
#
# With KERNELS the precompiled header is that of lib/pch_kernels.h.
function(gdn_add_library name)
  cmake_parse_arguments(ARG "KERNELS" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  # Headers that only its own files read lie in its folder, some in rooms of it.
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC gdn_compiler_flags ${ARG_LINK_LIBS})
  gdn_use_precompiled_header(${name} ${ARG_KERNELS})
  add_dependencies(${name} gdn-headers ${ARG_DEPENDS})
endfunction()

# gdn_add_static_tool(<name> <sources>... [LINK_LIBS <libraries>...])
function(gdn_add_static_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS}
    ${CMAKE_SOURCE_DIR}/tools/packaging/static/LinkedIn.cpp)
  set_target_properties(${name} PROPERTIES GDN_STATIC ON
    # Of the package gdn, which has libgdnrt.
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../../gdn/lib"
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static
    OUTPUT_NAME ${name}) # without the suffix in the wheel
  target_link_libraries(${name} PRIVATE gdn_compiler_flags ${ARG_LINK_LIBS})
  # libgcc stays outside: every system has one, and one of its own would ask for the
  # glibc that it was built with.
  target_link_options(${name} PRIVATE -static-libstdc++ -Wl,-s)
  add_dependencies(${name} gdn-headers)
endfunction()

# Tools take jemalloc if the machine has it: an eighth of a compilation's time.
find_library(GDN_JEMALLOC NAMES jemalloc libjemalloc.so.2)

# gdn_add_tool(<name> <sources>... [LINK_LIBS <libraries>...] [KERNELS])
#
# Also <name>-static, which is built on demand: LLVM, MLIR and the C++ library are
# inside, and no more of them than it calls.
function(gdn_add_tool name)
  cmake_parse_arguments(ARG "KERNELS" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE gdn_compiler_flags ${ARG_LINK_LIBS})
  if(GDN_JEMALLOC AND NOT GDN_SANITIZE)
    target_link_libraries(${name} PRIVATE ${GDN_JEMALLOC})
  endif()
  gdn_use_precompiled_header(${name} ${ARG_KERNELS})
  add_dependencies(${name} gdn-headers)
  set_property(GLOBAL APPEND PROPERTY GDN_TOOLS ${name}) # what check-gdn-lit builds
  gdn_add_static_tool(${name}-static ${ARG_UNPARSED_ARGUMENTS} LINK_LIBS ${ARG_LINK_LIBS})
endfunction()
