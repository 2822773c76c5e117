# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Tests of the repository as a whole. Included by test/CMakeLists.txt.

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

add_test(NAME layering COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/layering.py")
add_test(NAME layering-self-test
  COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/layering.py" --self-test)
add_test(NAME emission-order COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/emission_order.py")
add_test(NAME emission-order-self-test
  COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/emission_order.py" --self-test)

# Every tool says which version it is, and which LLVM it was built with if any.
function(attn_add_version_test tool pattern)
  add_test(NAME version-${tool} COMMAND ${tool} --version)
  set_tests_properties(version-${tool} PROPERTIES PASS_REGULAR_EXPRESSION "${pattern}")
  add_test(NAME help-${tool} COMMAND ${tool} --help)
  set_tests_properties(help-${tool} PROPERTIES PASS_REGULAR_EXPRESSION "[Uu][Ss][Aa][Gg][Ee]: ")
endfunction()
string(REPLACE "." "[.]" version_pattern "${PROJECT_VERSION}")
attn_add_version_test(attn-run "attn-run ${version_pattern}")

if(ATTN_BUILD_COMPILER)
  foreach(tool attn-compile attn-mask attn-opt tile-opt)
    attn_add_version_test(${tool}
      "${LLVM_VERSION_MAJOR}[.]${LLVM_VERSION_MINOR}.*${tool} ${version_pattern}")
  endforeach()
  add_test(NAME doc-examples
    COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/doc_examples.py"
      --attn-opt=$<TARGET_FILE:attn-opt> --docs=${PROJECT_BINARY_DIR}/docs)
  add_test(NAME doc-examples-self-test
    COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/doc_examples.py"
      --attn-opt=$<TARGET_FILE:attn-opt> --self-test)
  file(GLOB example_specs RELATIVE "${PROJECT_SOURCE_DIR}/examples" CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/examples/*.mlir")
  foreach(spec ${example_specs})
    get_filename_component(name ${spec} NAME_WE)
    add_test(NAME example-${name}
      COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/Tools/examples.py"
        --bin=$<TARGET_FILE_DIR:attn-run> --work=${CMAKE_CURRENT_BINARY_DIR}/examples ${name})
  endforeach()
  add_test(NAME tiles-gemma4-video
    COMMAND attn-mask gemma4_sliding.mlir --batch gemma4_video.json --tile=128x80
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/examples")
  set_tests_properties(tiles-gemma4-video PROPERTIES PASS_REGULAR_EXPRESSION
    "1865 visited [(]1323 full, 542 partial[)] of 20862 in the rectangle")
  add_test(NAME compile-scaling
    COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/Tools/compile_scaling.py"
      $<TARGET_FILE:attn-compile>)
  add_test(NAME bad-input
    COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/Tools/bad_input.py"
      --bin=$<TARGET_FILE_DIR:attn-run>)
  add_test(NAME edge-semantics
    COMMAND ${Python3_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/Tools/edge_semantics.py"
      --bin=$<TARGET_FILE_DIR:attn-run>)
  add_test(NAME out-of-tree
    COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/out-of-tree/run.sh" "${PROJECT_BINARY_DIR}")
elseif(NOT ATTN_SANITIZE) # Clang's sanitizers have symbols of LLVM's
  add_test(NAME no-llvm COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/no-llvm.sh" "${PROJECT_BINARY_DIR}")
endif()
