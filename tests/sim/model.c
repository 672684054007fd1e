/* model.c - see model.h. */
#include "model.h"

#include <errno.h>
#include <string.h>

#include "sim.h"
#include "test.h"

struct sim_fact *sim_model_fact(struct sim_model *model, const char *key)
{
    for (unsigned i = 0; i < model->count; i++)
        if (!strcmp(model->facts[i].key, key))
            return &model->facts[i];
    CHECK(model->count < SIM_FACTS_MAX && strlen(key) < sizeof model->facts[0].key);
    struct sim_fact *fact = &model->facts[model->count++];
    *fact = (struct sim_fact){.count = 1, .may = {SIM_ABSENT}};
    strcpy(fact->key, key);
    return fact;
}

void sim_fact_set(struct sim_fact *fact, uint64_t value)
{
    fact->may[0] = value;
    fact->count = 1;
}

bool sim_fact_may(const struct sim_fact *fact, uint64_t value)
{
    for (unsigned i = 0; i < fact->count; i++)
        if (fact->may[i] == value)
            return true;
    return false;
}

void sim_fact_add(struct sim_fact *fact, uint64_t value)
{
    if (sim_fact_may(fact, value))
        return;
    CHECK(fact->count < SIM_MAY_MAX);
    fact->may[fact->count++] = value;
}

/* Nobody was told how it went: the power is gone, or the answer says so. */
static bool is_open(int code)
{
    return sim.off || code == -WEIR_EUNKNOWN;
}

int sim_model_put(struct sim_model *model, weir_store *store, const char *key,
                  const struct sim_put *how)
{
    struct sim_fact *fact = sim_model_fact(model, key);
    sim_text_clear();
    int code = sim_put(store, key, how);
    sim_text_check(code);
    if (is_open(code)) {
        sim_fact_add(fact, how->value);
    } else if (!code) {
        CHECK(sim_fact_may(fact, SIM_ABSENT));
        sim_fact_set(fact, how->value);
    }
    return code;
}

int sim_model_remove(struct sim_model *model, weir_store *store, const char *key)
{
    struct sim_fact *fact = sim_model_fact(model, key);
    sim_text_clear();
    int code = weir_remove(store, key);
    sim_text_check(code);
    if (is_open(code)) {
        sim_fact_add(fact, SIM_ABSENT);
    } else if (!code) {
        CHECK(!fact->foreign && !(fact->count == 1 && fact->may[0] == SIM_ABSENT));
        sim_fact_set(fact, SIM_ABSENT);
    } else if (code == -ENOENT) {
        CHECK(sim_fact_may(fact, SIM_ABSENT));
    }
    return code;
}

static void check_fact(struct sim_fact *fact, weir_store *store)
{
    uint64_t value;
    weir_kind kind = WEIR_KIND_SEALED;
    int code = sim_get(store, fact->key, &value, &kind);
    if (code && code != -ENOENT) {
        fprintf(stderr, "cannot read '%s': %d\n", fact->key, code);
        CHECK(!code);
    }
    if (!sim_fact_may(fact, value)) {
        fprintf(stderr, "'%s' has value %llu; it may have", fact->key, (unsigned long long)value);
        for (unsigned i = 0; i < fact->count; i++)
            fprintf(stderr, " %llu", (unsigned long long)fact->may[i]);
        fprintf(stderr, " (0: absent)\n");
        exit(1);
    }
    CHECK_EQ(kind, fact->foreign ? WEIR_KIND_FOREIGN : WEIR_KIND_SEALED);
    sim_fact_set(fact, value);
    CHECK_EQ(weir_verify(store, fact->key, NULL, NULL), value ? 0 : -ENOENT);
}

static void check_list(struct sim_model *model, weir_store *store)
{
    weir_list *list;
    const weir_entry *entry;
    unsigned listed = 0, present = 0;
    int code;
    OK(weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL));
    while ((code = weir_list_next(list, &entry)) == 1) {
        if (entry->error == -ELOOP) /* a link that leads nowhere is listed, too */
            continue;
        struct sim_fact *fact = sim_model_fact(model, entry->key);
        CHECK(!entry->is_dir && !entry->error);
        CHECK(fact->may[0] != SIM_ABSENT);
        CHECK_EQ(entry->size_bytes, sim_value_size(fact->may[0]));
        listed++;
    }
    OK(code);
    weir_list_close(list);
    for (unsigned i = 0; i < model->count; i++)
        present += model->facts[i].may[0] != SIM_ABSENT;
    CHECK_EQ(listed, present);
}

void sim_model_check(struct sim_model *model, weir_store *store)
{
    for (unsigned i = 0; i < model->count; i++)
        check_fact(&model->facts[i], store);
    check_list(model, store);
}
