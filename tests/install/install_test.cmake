file(REMOVE_RECURSE "${WORK}")
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${code}:\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component library)
set(flags "")
if(SANITIZE)
  set(flags "-DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE}")
endif()
# A copy of the example, so that nothing is found in the source tree by accident.
file(COPY "${SOURCE}/examples/reshard_own_tensors" DESTINATION "${WORK}")
must(${CMAKE_COMMAND} -S ${WORK}/reshard_own_tensors -B ${WORK}/build ${flags}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${TYPE})
must(${CMAKE_COMMAND} --build ${WORK}/build)
must(${WORK}/build/reshard_own_tensors)

# Rank 1 alone holds 60 bytes that rank 0 lacks, and ranks 0 and 1 share 64 of bias: (60 + 64) / 2.
set(expected
"table rows [0, 3): stay on rank 0
table rows [3, 6): rank 1 -> rank 0
table rows [6, 7): rank 2 -> rank 0
bias rows [0, 8): rank 0 -> rank 2
table rows [7, 9): stay on rank 2
table rows [9, 12): rank 3 -> rank 2
bias rows [0, 7): rank 0 -> rank 3
bias rows [7, 8): rank 1 -> rank 3
busiest rank receives 92 bytes (lower bound 92), sends 64 (optimum 62)
executed on 4 ranks: every element is right
")
if(NOT output STREQUAL expected)
  message(FATAL_ERROR "the example printed:\n${output}\ninstead of:\n${expected}")
endif()

file(COPY "${SOURCE}/examples/reshard_own_weights" DESTINATION "${WORK}")
must(${CMAKE_COMMAND} -S ${WORK}/reshard_own_weights -B ${WORK}/build-weights ${flags}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${TYPE})
must(${CMAKE_COMMAND} --build ${WORK}/build-weights)
must(${WORK}/build-weights/reshard_own_weights)
# A serving rank lacks three quarters of eight layers of 256 bytes; of one layer that changed, too.
set(expected
"first reshard, checksums compared: 1536 bytes to the busiest rank, every element is right
one layer changed: 192 bytes to the busiest rank, every element is right
merged messages: 1536 bytes to the busiest rank, every element is right
100 reshards beside the writing: 1536 bytes to the busiest rank, every element is right
")
if(NOT output STREQUAL expected)
  message(FATAL_ERROR "the example printed:\n${output}\ninstead of:\n${expected}")
endif()

# The programs under a prefix of their own plan with the presets that were installed beside them, and
# find one another there although PATH does not lead to them.
set(programs ${WORK}/programs)
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${programs} --component programs)
set(alone ${CMAKE_COMMAND} -E env PATH=/usr/bin:/bin
  TESSERA_CONFIGS_DIR=${programs}/share/tessera/configs)
must(${alone} ${programs}/bin/tessera plan --model qwen2.5-7b --cluster h100-8
  --workload grpo-7b-1k -o ${WORK}/plan.json)
must(${alone} ${programs}/bin/tessera simulate ${WORK}/plan.json)
foreach(program tessera-run tessera-gui)
  if(EXISTS ${programs}/bin/${program})
    must(${alone} ${programs}/bin/tessera doctor)
    if(NOT output MATCHES "OK +${program} +${programs}/bin/${program}")
      message(FATAL_ERROR "${program} is not found beside the installed tessera:\n${output}")
    endif()
  endif()
endforeach()
