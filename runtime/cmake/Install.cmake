# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What users of C get: libgdnrt, its headers, find_package(gdn) and pkg-config. The
# component `runtime` is a plain cmake --install, the component `python` has the same
# under gdn/, the folder of the Python package. Either folder may be moved afterwards.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/gdnConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

# <library> is what linkers are given: wheels hold no links, so no libgdnrt.so.
function(gdn_install_for_c component libdir includedir library)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${component})
  set(package_dir ${libdir}/cmake/gdn)
  set(when COMPONENT ${component})
  if(component STREQUAL "python")
    list(APPEND when EXCLUDE_FROM_ALL)
  endif()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gdn-c DESTINATION ${includedir} ${when}
    FILES_MATCHING PATTERN "*.h")

  configure_package_config_file(${PROJECT_SOURCE_DIR}/runtime/cmake/gdnConfig.cmake.in
    ${made}/gdnConfig.in INSTALL_DESTINATION ${package_dir} PATH_VARS libdir includedir)
  file(GENERATE OUTPUT ${made}/gdnConfig.cmake INPUT ${made}/gdnConfig.in)
  install(FILES ${made}/gdnConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/gdnConfigVersion.cmake
    DESTINATION ${package_dir} ${when})

  file(RELATIVE_PATH prefix /prefix/${libdir}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" prefix "${prefix}")
  configure_file(${PROJECT_SOURCE_DIR}/runtime/cmake/gdn.pc.in ${made}/gdn.pc @ONLY)
  install(FILES ${made}/gdn.pc DESTINATION ${libdir}/pkgconfig ${when})
endfunction()

if(NOT SKBUILD)
  install(TARGETS gdnrt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  gdn_install_for_c(runtime ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_INCLUDEDIR} gdnrt)
endif()
install(TARGETS gdnrt LIBRARY DESTINATION gdn/lib COMPONENT python NAMELINK_SKIP
  EXCLUDE_FROM_ALL)
gdn_install_for_c(python gdn/lib gdn/include :libgdnrt.so.${PROJECT_VERSION_MAJOR})
