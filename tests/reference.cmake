add_test(NAME reference_hf COMMAND check_inputs_hf ${PROJECT_SOURCE_DIR}/tests/reference/hf)
