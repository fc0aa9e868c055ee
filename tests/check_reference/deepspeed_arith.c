#include "deepspeed_case.h"
void ds_check_arithmetic(DsCheck *check, const char *kind, JsonObject *root){(void)check;(void)kind;(void)root;}
void ds_check_run(DsCheck *check, JsonObject *root){(void)check;(void)root;}
