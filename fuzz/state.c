/* States of ledgers: one that decodes means what it says, and encoded again it is the same. */
#include "store/ledger.h"
#include "store/node.h"
#include "target.h"

static void check(struct weir_ledger_state *state, uint8_t *bytes, size_t size)
{
    size_t again_size;
    PROMISE(state->count <= WEIR_ENTRIES_MAX && state->past_count <= WEIR_TOKENS_MAX);
    for (size_t i = 0; i < state->count; i++) {
        const struct weir_ledger_entry *e = &state->entries[i];
        struct weir_save back;
        char text[WEIR_SAVE_TEXT_BYTES];
        PROMISE(weir_save_name_check(e->save.name) == 0);
        PROMISE(e->save.parts && e->save.parts <= WEIR_SET_PARTS_MAX);
        weir_save_text(text, &e->save);
        PROMISE(weir_save_of_text(&back, text, strlen(text)));
        PROMISE(weir_save_same(&back, &e->save));
    }
    for (size_t i = 0; i < state->label_count; i++) {
        const struct weir_ledger_entry *e = weir_ledger_find_label(state, state->labels[i].name);
        PROMISE(weir_label_check(state->labels[i].name) == 0);
        PROMISE(e && !e->retired_ns && weir_ledger_is_labelled(state, &e->save));
    }
    uint8_t *again = weir_state_encode(state, &again_size);
    PROMISE(again && again_size == size);
    memset(bytes + 2, 0, state->label_count ? 2 : 6); /* reserved: not looked at */
    PROMISE(!memcmp(again, bytes, size));
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_ledger_state state;
    uint8_t *bytes = exact_copy(data, size);
    if (weir_state_decode(&state, bytes, size) == 0) {
        check(&state, bytes, size);
        weir_state_free(&state);
    }
    free(bytes);
    return 0;
}
