# Recorded cases of other programs, one line a checker.
add_test(NAME reference_deepspeed COMMAND check_reference deepspeed ${CMAKE_CURRENT_SOURCE_DIR}/reference/deepspeed)
add_test(NAME reference_hf COMMAND check_inputs_hf ${PROJECT_SOURCE_DIR}/tests/reference/hf)
add_test(NAME reference_fsdp COMMAND check_reference fsdp ${CMAKE_CURRENT_SOURCE_DIR}/reference/fsdp)
add_test(NAME reference_inputs COMMAND check_inputs_ds ${CMAKE_CURRENT_SOURCE_DIR}/reference/ds_inputs ${CMAKE_CURRENT_SOURCE_DIR}/reference/fsdp_inputs)
add_test(NAME reference_memory COMMAND check_memory ${CMAKE_CURRENT_SOURCE_DIR}/reference/runs_memory.csv)
add_test(NAME reference_activations COMMAND check_activations ${CMAKE_CURRENT_SOURCE_DIR}/reference/activations)
add_test(NAME reference_cases COMMAND check_cases ${PROJECT_SOURCE_DIR}/scenarios/cases)
add_test(NAME reference_cases_table COMMAND check_cases --current ${PROJECT_SOURCE_DIR}/tools/docs/cases.md ${PROJECT_SOURCE_DIR}/scenarios/cases)
add_test(NAME reference_e2e COMMAND check_e2e --known ${CMAKE_CURRENT_SOURCE_DIR}/reference/e2e/known.csv ${CMAKE_CURRENT_SOURCE_DIR}/reference/e2e)
foreach(kind deepspeed fsdp)
    add_test(NAME reference_${kind}_fields COMMAND check_reference ${kind}-fields
        ${CMAKE_CURRENT_SOURCE_DIR}/reference/${kind}/fields.txt ${CMAKE_CURRENT_SOURCE_DIR}/reference/${kind})
endforeach()
