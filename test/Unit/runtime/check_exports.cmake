# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The shared library exports the C ABI, all of it documented, and nothing else;
# and it needs no LLVM.

execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY}
  OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${listing}")
set(count 0)
foreach(line IN LISTS lines)
  string(REGEX REPLACE ".* ([^ ]+)$" "\\1" symbol "${line}")
  if(NOT symbol MATCHES "^gdnrt_")
    message(SEND_ERROR "${symbol} is exported, but only gdnrt_* may be")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
file(GLOB headers ${CMAKE_CURRENT_LIST_DIR}/../../../include/gdn-c/*.h)
set(declared "")
foreach(header IN LISTS headers)
  file(STRINGS ${header} functions REGEX "^GDNRT_API")
  list(APPEND declared ${functions})
endforeach()
list(LENGTH declared expected)
if(NOT count EQUAL expected)
  message(SEND_ERROR "the headers of gdn-c declare ${expected} functions, the library exports ${count}")
endif()
execute_process(COMMAND ${NM} -D --undefined-only ${LIBRARY}
  OUTPUT_VARIABLE needed COMMAND_ERROR_IS_FATAL ANY)
if(needed MATCHES "llvm|mlir")
  message(SEND_ERROR "the runtime needs LLVM:\n${needed}")
endif()
