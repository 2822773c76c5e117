# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Headers and the CMake package. Libraries and tools install themselves, see AddAttn.cmake.

include(CMakePackageConfigHelpers)

set(ATTN_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Attn")

# The runtime side.
install(DIRECTORY include/attn-c DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
foreach(folder Core Reference Runtime Sim)
  install(DIRECTORY include/attn/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn
    FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/include/attn/Config.h"
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn)
install(EXPORT AttnRuntimeTargets NAMESPACE Attn:: DESTINATION ${ATTN_CMAKE_DIR})

# The compiler side. Generated headers keep the paths that our headers include them by.
if(ATTN_BUILD_COMPILER)
  foreach(folder Compiler Conversion Dialect Support Verify)
    if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/include/attn/${folder}")
      install(DIRECTORY include/attn/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn
        FILES_MATCHING PATTERN "*.h")
    endif()
  endforeach()
  foreach(folder attn conversion tile verify)
    install(DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/dialect/${folder}"
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn/generated
      FILES_MATCHING PATTERN "*.h.inc" PATTERN CMakeFiles EXCLUDE)
  endforeach()
  install(EXPORT AttnCompilerTargets NAMESPACE Attn:: DESTINATION ${ATTN_CMAKE_DIR})
endif()

configure_package_config_file(lib/AttnConfig.cmake.in
  "${CMAKE_CURRENT_BINARY_DIR}/cmake/AttnConfig.cmake" INSTALL_DESTINATION ${ATTN_CMAKE_DIR})
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/cmake/AttnConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/cmake/AttnConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/cmake/AttnConfigVersion.cmake" DESTINATION ${ATTN_CMAKE_DIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
