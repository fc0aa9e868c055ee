/* Comma-separated values with double quotes. */
#pragma once

#include <glib.h>

/* One record into fields (GPtrArray of char *), quotes removed. */
GPtrArray *csv_split(const char *line);
/* The field of a named column, "" where the column or field is missing. */
const char *csv_field(const GPtrArray *header, const GPtrArray *record, const char *column);
