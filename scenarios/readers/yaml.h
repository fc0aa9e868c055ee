/* YAML settings as a tree with positions, by libyaml, with the scalars of YAML 1.1 as PyYAML
 * resolves them: unquoted yes, no, on, off are booleans, and 1e8 without a point is text. */
#pragma once

#include "scenarios/readers/message.h"
#include "scenarios/readers/tree.h"

/* One document.  Anchors, aliases, tags and merge keys are refused (settings files have none, and
 * aliases can blow up); equal keys are an error each.  NULL where nothing could be read.  Bounds:
 * import_tree.h. */
ZpTree *zp_fsdp_yaml_parse(const char *text, gsize length, ZpImportMessages *messages);
