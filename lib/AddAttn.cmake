# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Thin wrappers that know the layers. LINK names direct dependencies only.

# A file of several files has unnamed namespaces of files that are not its own, which g++ takes for headers'.
set(ATTN_WARNINGS -Wall -Wextra -Wno-unused-parameter
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
# Of files that are long to compile and quick to run. Clang reads a precompiled header only at the
# level that made it.
set(ATTN_CHEAP "$<$<CXX_COMPILER_ID:GNU>:-O1>")

# attn_export(name SET): installs library AttnX in an export set; it is Attn::X there and here.
function(attn_export name set)
  string(REGEX REPLACE "^Attn" "" short ${name})
  add_library(Attn::${short} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  target_compile_features(${name} PUBLIC cxx_std_17)
  install(TARGETS ${name} EXPORT ${set}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# What the headers of a file cost, paid once for several files.
function(attn_unity name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${ATTN_UNITY} UNITY_BUILD_BATCH_SIZE 6)
endfunction()

# attn_add_core_library(name SOURCES... LINK libs...): a library that uses no LLVM.
function(attn_add_core_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  attn_unity(${name})
  target_compile_options(${name} PRIVATE ${ATTN_WARNINGS})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  attn_export(${name} AttnRuntimeTargets)
endfunction()

# attn_add_mlir_library(name SOURCES... LINK libs... DEPENDS targets...): compiler side. All such
# libraries share one precompiled header of MLIR's, which cuts a pass file from 8 s to 2 s.
function(attn_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  attn_mlir_settings(${name})
  attn_unity(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  attn_export(${name} AttnCompilerTargets)
endfunction()

function(attn_mlir_settings name)
  # MLIR compares type ids by address across the shared library, so they must not be hidden.
  set_target_properties(${name} PROPERTIES
    C_VISIBILITY_PRESET default CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
  target_compile_options(${name} PRIVATE ${ATTN_WARNINGS})
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/dialect> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attn/generated>)
  target_compile_definitions(${name} PRIVATE ${LLVM_DEFINITIONS_LIST})
  if(TARGET AttnMlirPch)
    target_precompile_headers(${name} REUSE_FROM AttnMlirPch)
  endif()
endfunction()

# attn_add_tool(name SOURCES... LINK libs... [MLIR])
function(attn_add_tool name)
  cmake_parse_arguments(ARG "MLIR" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_MLIR)
    attn_mlir_settings(${name})
    # As the precompiled header was made; an executable would get -fPIE.
    target_compile_options(${name} PRIVATE -fPIC)
  else()
    target_compile_options(${name} PRIVATE ${ATTN_WARNINGS})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
