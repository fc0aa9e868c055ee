/* Words that keep a row of the key tables short: only ds_table.c and ds_table_other.c include it.
 * FIRST is the key of the first row. */
#pragma once

#define ROW(id, name, ...) [ZP_DS_##id - FIRST] = {.path = name, __VA_ARGS__},
#define ELEMENTS .kind = ZP_DS_COUNT, .unit = "elements", NO_LIMIT
#define NO_LIMIT .most = 9223372036854775807.0
#define BOOLEAN .kind = ZP_DS_BOOLEAN
#define BOOLEAN_TRUE BOOLEAN, .fallback = "true"
#define BOOLEAN_FALSE BOOLEAN, .fallback = "false"
#define NULLABLE .nullable = TRUE
#define MEMORY .effect = ZP_DS_EFFECT_MEMORY
#define TIME .effect = ZP_DS_EFFECT_TIME
#define MEMORY_TIME .effect = ZP_DS_EFFECT_MEMORY | ZP_DS_EFFECT_TIME
#define STAGE_1 .stages = 1u << 1
#define STAGE_3 .stages = 1u << 3
#define STAGES_1_2 .stages = 1u << 1 | 1u << 2
#define PARTITIONED .stages = 1u << 1 | 1u << 2 | 1u << 3
#define INTENT .intent = TRUE
