#include "scenarios/settings/machine.h"

#include <string.h>

#include "models/words/nearest.h"
#include "scenarios/settings/text_internal.h"

#define KEY(section_, key_, kind_, ...)                                          \
    {                                                                            \
        .section = section_, .key = key_, .kind = ZP_SCHEMA_##kind_, __VA_ARGS__ \
    }
#define TEXT(section_, key_) KEY(section_, key_, TEXT)
#define RATE(section_, key_, kind_) KEY(section_, key_, kind_, .low = 1, .high = 1e21)
#define SHARE(section_, key_) KEY(section_, key_, RATIO, .low = 1e-6, .high = 1)
#define TIME(section_, key_) KEY(section_, key_, TIME, .max = 1000 * ZP_TIME_PER_S)
#define COUNT(section_, key_, unit_) \
    KEY(section_, key_, COUNT, .unit = unit_, .min = 1, .max = 1 << 20)

static const ZpSchemaKey table[ZP_N_MACHINE_KEYS] = {
    [ZP_MACHINE_GPU] = TEXT("gpu", "name"),
    [ZP_MACHINE_GPU_LIKE] = TEXT("gpu", "like"),
    [ZP_MACHINE_CHIP] = TEXT("gpu", "chip"),
    [ZP_MACHINE_MEMORY] = KEY("gpu", "memory", BYTES, .min = 1, .max = G_MAXINT64 / 1024),
    [ZP_MACHINE_BF16] = RATE("gpu", "bf16", FLOPS),
    [ZP_MACHINE_FP16] = RATE("gpu", "fp16", FLOPS),
    [ZP_MACHINE_TF32] = RATE("gpu", "tf32", FLOPS),
    [ZP_MACHINE_FP32] = RATE("gpu", "fp32", FLOPS),
    [ZP_MACHINE_FP8] = RATE("gpu", "fp8", FLOPS),
    [ZP_MACHINE_SUSTAINED] = RATE("gpu", "sustained", FLOPS),
    [ZP_MACHINE_BANDWIDTH] = RATE("gpu", "memory_bandwidth", BANDWIDTH),
    [ZP_MACHINE_BANDWIDTH_SUSTAINED] = RATE("gpu", "memory_sustained", BANDWIDTH),
    [ZP_MACHINE_LINK] = RATE("gpu", "link_bandwidth", BANDWIDTH),
    [ZP_MACHINE_H2D] = RATE("gpu", "h2d", BANDWIDTH),
    [ZP_MACHINE_D2H] = RATE("gpu", "d2h", BANDWIDTH),
    [ZP_MACHINE_MULTIPROCESSORS] = COUNT("gpu", "multiprocessors", NULL),
    [ZP_MACHINE_POWER] = COUNT("gpu", "power", "W"),
    [ZP_MACHINE_NODE] = TEXT("node", "name"),
    [ZP_MACHINE_NODE_GPUS] = COUNT("node", "gpus", NULL),
    [ZP_MACHINE_NETWORK] = RATE("node", "network_bandwidth", BANDWIDTH),
    [ZP_MACHINE_FABRIC_LIKE] = TEXT("fabric", "like"),
    [ZP_MACHINE_LINK_EFFICIENCY] = SHARE("fabric", "link_efficiency"),
    [ZP_MACHINE_LINK_LATENCY] = TIME("fabric", "link_latency"),
    [ZP_MACHINE_NETWORK_EFFICIENCY] = SHARE("fabric", "network_efficiency"),
    [ZP_MACHINE_NETWORK_LATENCY] = TIME("fabric", "network_latency"),
};

static void
complain_unknown(const char *group, const char *key, const char *where, ZpProblems *problems)
{
    const char *names[ZP_N_MACHINE_KEYS + 1] = {NULL};
    gsize n = 0;
    for (int k = 0; k < ZP_N_MACHINE_KEYS; k++) {
        if (strcmp(table[k].section, group) == 0)
            names[n++] = table[k].key;
    }
    if (n == 0) {
        zp_problems_add(problems, ZP_SCENARIO_ERROR_UNKNOWN, where,
                        "unknown group [%s]; legal are [gpu], [node], [fabric]", group);
        return;
    }
    g_autofree char *hint = zp_nearest_hint(key, names);
    g_autofree char *legal = g_strjoinv(", ", (char **)(gpointer)names);
    g_autofree char *what = g_strdup_printf("unknown key%s; legal are %s", hint, legal);
    zp_problems_add_key(problems, ZP_SCENARIO_ERROR_UNKNOWN, where, group, key, what);
}

static void
read_entry(const char *group, const ZpSettingsTextEntry *entry, const char *where,
           ZpMachineSetting *settings, ZpProblems *problems)
{
    int k = 0;
    while (k < ZP_N_MACHINE_KEYS &&
           (strcmp(table[k].section, group) != 0 || strcmp(table[k].key, entry->key) != 0))
        k++;
    if (k == ZP_N_MACHINE_KEYS) {
        complain_unknown(group, entry->key, where, problems);
        return;
    }
    g_autoptr(GError) error = NULL;
    ZpMachineSetting *setting = &settings[k];
    if (!zp_schema_parse(&table[k], entry->value, &setting->value, &error)) {
        zp_problems_add_key(problems, zp_problems_reason(error), where, group, entry->key,
                            error->message);
        return;
    }
    setting->given = TRUE;
    setting->line = entry->line;
    if (setting->value.text != NULL) {
        char *text = setting->value.text;
        setting->value.text = (char *)(gpointer)g_intern_string(text);
        g_ref_string_release(text);
    }
}

gboolean
zp_machine_parse(const char *text, gsize length, const char *name,
                 ZpMachineSetting settings[ZP_N_MACHINE_KEYS], ZpProblems *problems)
{
    g_auto(ZpProblems) own;
    zp_problems_init(&own, name);
    memset(settings, 0, sizeof *settings * ZP_N_MACHINE_KEYS);
    g_autoptr(ZpSettingsText) parts = zp_settings_text_scan(text, length, &own);
    for (guint e = 0; e < parts->entries->len && !zp_problems_full(&own); e++) {
        const ZpSettingsTextEntry *entry = &g_array_index(parts->entries, ZpSettingsTextEntry, e);
        const char *group = g_array_index(parts->groups, ZpSettingsTextGroup, entry->group).name;
        g_autofree char *where = g_strdup_printf("%s:%d", own.name, entry->line);
        read_entry(group, entry, where, settings, &own);
    }
    g_autoptr(GError) error = NULL;
    if (zp_problems_raise(&own, &error))
        return TRUE;
    for (guint m = 0; m < own.messages->len; m++) {
        char *message = g_ptr_array_index(own.messages, m);
        char *what = strstr(message + strlen(own.name), ": ");
        *what = '\0';
        zp_problems_add(problems, own.first, message, "%s", what + 2);
    }
    return FALSE;
}

void
zp_machine_complain(const ZpMachineSetting *settings, ZpMachineKey key, const char *name,
                    ZpProblems *problems, ZpScenarioError code, const char *what)
{
    g_autofree char *where =
        settings[key].given ? g_strdup_printf("%s:%d", name, settings[key].line) : g_strdup(name);
    zp_problems_add_key(problems, code, where, table[key].section, table[key].key, what);
}
