#include "models/ledger/checks.h"

#include <string.h>

#include "models/ledger/checks_internal.h"

G_DEFINE_QUARK(zp - checks - error - quark, zp_checks_error)

static const ChecksRule *const tables[] = {checks_state_rules, checks_peak_rules,
                                           checks_traffic_rules, checks_time_rules};

static guint
runtime_bit(const char *name)
{
    static const struct {
        const char *name;
        guint bit;
    } runtimes[] = {{"ideal", CHECKS_IDEAL}, {"deepspeed", CHECKS_DEEPSPEED},
                    {"fsdp1", CHECKS_FSDP1}, {"fsdp2", CHECKS_FSDP2},
                    {"ddp", CHECKS_DDP},     {"none", CHECKS_DDP}};
    for (gsize i = 0; i < G_N_ELEMENTS(runtimes); i++)
        if (strcmp(runtimes[i].name, name) == 0)
            return runtimes[i].bit;
    g_assert_not_reached();
}

static void
count_elements(ChecksFacts *facts)
{
    gint32 owners = facts->job->world.shard_group;
    for (gint32 u = 0; u < facts->units->n_units; u++) {
        const ZpUnit *unit = &facts->units->units[u];
        facts->elements += unit->elements;
        facts->trainable += unit->trainable_elements;
        facts->shard_elements += checks_ceil(unit->elements, owners);
        facts->shard_trainable += checks_ceil(unit->trainable_elements, owners);
        facts->largest_unit_elements = MAX(facts->largest_unit_elements, unit->elements);
        facts->largest_trainable_elements =
            MAX(facts->largest_trainable_elements, unit->trainable_elements);
        facts->largest_parameter_elements =
            MAX(facts->largest_parameter_elements, unit->largest_parameter_elements);
    }
}

static void
count_rows(ChecksFacts *facts)
{
    const ZpModel *model = facts->job->model;
    facts->n_parameters = (gint32)model->parameters->len;
    for (gint32 p = 0; p < facts->n_parameters; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, p);
        gint64 rows = parameter->n_dims > 0 ? MAX(1, parameter->shape[0]) : 1;
        facts->row_elements += checks_ceil(parameter->elements, rows);
    }
}

void
checks_facts_init(ChecksFacts *facts, const ZpJob *job, const ZpUnits *units, ZpDeepspeed *defaults)
{
    zp_deepspeed_init(defaults);
    *facts = (ChecksFacts){.job = job,
                           .units = units,
                           .fsdp = job->fsdp != NULL ? job->fsdp : zp_fsdp_defaults(),
                           .deepspeed = job->deepspeed != NULL ? job->deepspeed : defaults,
                           .runtime = runtime_bit(job->runtime)};
    count_elements(facts);
    if (facts->runtime != CHECKS_IDEAL)
        count_rows(facts);
}

static void
measure_play(ChecksFacts *facts)
{
    const ZpPlayRank *rank = &facts->step->play->ranks[0];
    const ZpMemory *device = &rank->memory[ZP_TAPE_SPACE_DEVICE];
    for (int c = 0; c < ZP_N_CLASSES; c++) {
        facts->device_bytes[c] = device->bytes[c];
        facts->bytes[c] = device->bytes[c] + rank->memory[ZP_TAPE_SPACE_HOST].bytes[c];
        facts->peak_bytes[c] = device->class_peak_bytes[c];
    }
}

static void
measure_ledger(ChecksFacts *facts)
{
    const ZpLedger *ledger = facts->step->ledger;
    memset(facts->bytes, 0, sizeof facts->bytes);
    memset(facts->peak_bytes, 0, sizeof facts->peak_bytes);
    for (int r = 0; r < ledger->n_rows; r++)
        facts->bytes[ledger->rows[r].class_id] += ledger->rows[r].persistent_bytes;
    facts->bytes[ZP_CLASS_RUNTIME] = ledger->overhead_bytes;
    facts->peak_bytes[ZP_CLASS_GATHERED] = ledger->gathered_bytes + ledger->prefetched_bytes;
    facts->peak_bytes[ZP_CLASS_ACTIVATION] = ledger->activation_bytes;
    facts->peak_bytes[ZP_CLASS_LOGITS] = ledger->logits_bytes;
    facts->peak_bytes[ZP_CLASS_COMMUNICATION] = ledger->bucket_bytes;
    facts->peak_bytes[ZP_CLASS_OPTIMIZER_TEMPORARY] = ledger->optimizer_temporary_bytes;
    memcpy(facts->device_bytes, facts->bytes, sizeof facts->bytes);
    facts->of_ledger = TRUE;
    facts->scan = NULL;
}

static gboolean
hold(ChecksFacts *facts, GError **error)
{
    int code = 0;
    checks_store(facts);
    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++) {
        for (const ChecksRule *rule = tables[t]; rule->label.name != NULL; rule++, code++) {
            if (!(rule->runtimes & facts->runtime) || (facts->of_ledger && !rule->ledger) ||
                rule->holds(facts))
                continue;
            g_set_error(error, ZP_CHECKS_ERROR, code, "%s: broken rule%s: %s", rule->label.name,
                        facts->of_ledger ? " in the ledger" : "", rule->label.guards);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean
zp_checks_run(const ZpChecksStep *step, GError **error)
{
    ChecksScan scan;
    ChecksFacts facts;
    ZpDeepspeed defaults;
    checks_facts_init(&facts, step->job, step->units, &defaults);
    gboolean ideal = facts.runtime == CHECKS_IDEAL;
    facts.step = step;
    facts.scan = &scan;
    checks_scan(step->tape, !ideal, &scan);
    measure_play(&facts);
    if (!hold(&facts, error))
        return FALSE;
    if (!ideal)
        return TRUE; /* the ledger states the ideal rules */
    measure_ledger(&facts);
    return hold(&facts, error);
}

gsize
zp_checks_count(void)
{
    gsize n = 0;
    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const ChecksRule *rule = tables[t]; rule->label.name != NULL; rule++)
            n++;
    return n;
}

const ZpChecksName *
zp_checks_name(gsize index)
{
    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const ChecksRule *rule = tables[t]; rule->label.name != NULL; rule++)
            if (index-- == 0)
                return &rule->label;
    g_assert_not_reached();
}
