#include "reports/text/words.h"

const char *const zp_words_categories[ZP_TAPE_N_CATEGORIES] = {
    [ZP_TAPE_COMPUTE] = "compute",
    [ZP_TAPE_COMMUNICATION] = "communication",
    [ZP_TAPE_COPY] = "copy",
    [ZP_TAPE_HOST_COMPUTE] = "host compute",
};

const char *const zp_words_spaces[ZP_TAPE_N_SPACES] = {
    [ZP_TAPE_SPACE_DEVICE] = "device",
    [ZP_TAPE_SPACE_HOST] = "host",
};

const char *
zp_words_verdict(ZpVerdict verdict)
{
    static const char *const words[ZP_N_VERDICTS] = {"-", "yes", "tight", "no"};
    return words[verdict];
}

void
zp_words_parts(const ZpLedger *ledger, ZpWordsPart *parts)
{
    const ZpWordsPart all[ZP_WORDS_N_PARTS] = {
        {"persistent", ledger->persistent_bytes},
        {"gathered", ledger->gathered_bytes},
        {"prefetched", ledger->prefetched_bytes},
        {"buckets", ledger->bucket_bytes},
        {"activations", ledger->activation_bytes},
        {"logits", ledger->logits_bytes},
        {"optimizer temporaries", ledger->optimizer_temporary_bytes},
        {"runtime overhead", ledger->overhead_bytes},
        {"contingency", ledger->contingency_bytes},
    };
    for (int i = 0; i < ZP_WORDS_N_PARTS; i++)
        parts[i] = all[i];
}
