# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake --install: libgdnrt, its C headers, find_package(gdn) and pkg-config. The
# folder may be moved afterwards. The wheel has another component, `python`.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS gdnrt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gdn-c
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT runtime FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gdn)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/gdnConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/gdnConfig.in
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/gdnConfig.cmake
  INPUT ${CMAKE_CURRENT_BINARY_DIR}/gdnConfig.in)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/gdnConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gdnConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/gdnConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT runtime)

file(RELATIVE_PATH gdn_prefix_of_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" gdn_prefix_of_pc "${gdn_prefix_of_pc}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/gdn.pc.in ${CMAKE_CURRENT_BINARY_DIR}/gdn.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gdn.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
