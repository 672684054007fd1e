/* Ledgers: who may commit, what is committed, and what can never be any more. */
#include "stores.h"

#include "store/ledger.h"
#include "store/node.h"

static weir_store *store;
static struct weir_ledger *ledger;

static void fresh_ledger(void)
{
    static unsigned number;
    char name[32];
    weir_ledger_close(ledger);
    snprintf(name, sizeof name, "runs/r%u", number++);
    OK(weir_ledger_open(&ledger, store, name));
}

struct token {
    uint8_t bytes[WEIR_TOKEN_BYTES];
};

static struct token token_of(unsigned number)
{
    struct token token = {{(uint8_t)number, (uint8_t)(number >> 8), 77}};
    return token;
}

static int join_as(unsigned number, uint64_t *attempt)
{
    struct token token = token_of(number);
    return weir_ledger_join(ledger, token.bytes, attempt);
}

static struct weir_save save_of(const char *name, uint64_t attempt, uint64_t number)
{
    struct weir_save save = {.attempt = attempt, .number = number, .parts = 3};
    snprintf(save.name, sizeof save.name, "%s", name);
    return save;
}

/* Commits with a root of that byte. */
static int commit(const char *name, uint64_t attempt, uint64_t number, uint8_t root)
{
    struct weir_save save = save_of(name, attempt, number);
    uint8_t digest[WEIR_SHA256_BYTES];
    memset(digest, root, sizeof digest);
    return weir_ledger_commit(ledger, &save, digest, NULL);
}

/* The state as text: "a-1.1 b-1.2!" with '!' for what is retired. */
static const char *entries(void)
{
    static char text[1024];
    struct weir_ledger_state state;
    size_t used = 0;
    text[0] = 0;
    OK(weir_ledger_read(ledger, &state));
    for (size_t i = 0; i < state.count; i++) {
        char save[WEIR_SAVE_TEXT_BYTES];
        weir_save_text(save, &state.entries[i].save);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", used ? " " : "", save,
                                 state.entries[i].retired_ns ? "!" : "");
        CHECK(used < sizeof text);
    }
    weir_state_free(&state);
    return text;
}

static uint64_t head_number(void)
{
    struct weir_ledger_state state;
    OK(weir_ledger_read(ledger, &state));
    uint64_t number = state.record.number;
    weir_state_free(&state);
    return number;
}

static bool is_named(void *arg, const struct weir_ledger_entry *entry)
{
    return !strcmp(entry->save.name, arg);
}

static bool is_any(void *arg, const struct weir_ledger_entry *entry)
{
    (void)arg, (void)entry;
    return true;
}

/* ---- joining ---- */

static void joining(void)
{
    uint64_t a, b, again = 0;
    fresh_ledger();
    CHECK_EQ(head_number(), 0);
    CHECK(!strcmp(entries(), ""));
    OK(join_as(1, &a));
    CHECK_EQ(a, 1);
    OK(join_as(1, &again)); /* another process of the same incarnation appends nothing */
    CHECK_EQ(again, a);
    CHECK_EQ(head_number(), 1);
    OK(commit("x", a, 1, 1));
    OK(join_as(2, &b));
    CHECK_EQ(b, 3); /* the number of its record */
    CHECK_EQ(join_as(1, &again), -ESTALE);
    CHECK(strstr(weir_error_text(), "attempt 3"));
    CHECK_EQ(again, a);
    CHECK_EQ(commit("y", a, 2, 1), -ESTALE);
    CHECK_EQ(head_number(), 3);
    OK(commit("x", a, 1, 1));                    /* what was committed stays so, whoever asks */
    CHECK_EQ(commit("x", b + 1, 1, 1), -ESTALE); /* nor under an attempt that never began */
    CHECK(strstr(weir_error_text(), "there is no attempt 4"));
    OK(commit("y", b, 1, 1));
    CHECK(!strcmp(entries(), "x-1.1 y-3.1"));
}

/* Stragglers of the last WEIR_TOKENS_MAX incarnations are recognised. */
static void many_incarnations(void)
{
    uint64_t attempt;
    struct weir_ledger_state state;
    fresh_ledger();
    for (unsigned i = 0; i <= WEIR_TOKENS_MAX + 1; i++) {
        OK(join_as(i, &attempt));
        CHECK_EQ(attempt, i + 1);
    }
    OK(weir_ledger_read(ledger, &state));
    CHECK_EQ(state.past_count, WEIR_TOKENS_MAX);
    for (unsigned i = 0; i < WEIR_TOKENS_MAX; i++) {
        struct token want = token_of(WEIR_TOKENS_MAX - i);
        CHECK(!memcmp(state.past[i], want.bytes, WEIR_TOKEN_BYTES)); /* newest first */
    }
    weir_state_free(&state);
    for (unsigned i = 1; i <= WEIR_TOKENS_MAX; i++)
        CHECK_EQ(join_as(i, &attempt), -ESTALE);
    CHECK_EQ(attempt, WEIR_TOKENS_MAX + 2);
    OK(join_as(WEIR_TOKENS_MAX + 1, &attempt)); /* the current one */
    CHECK_EQ(attempt, WEIR_TOKENS_MAX + 2);
    OK(join_as(0, &attempt)); /* forgotten: a new incarnation */
    CHECK_EQ(attempt, WEIR_TOKENS_MAX + 3);
    CHECK_EQ(join_as(WEIR_TOKENS_MAX + 1, &attempt), -ESTALE);
}

/* ---- committing ---- */

static void committing(void)
{
    uint64_t attempt;
    fresh_ledger();
    CHECK_EQ(commit("x", 1, 1, 1), -ESTALE); /* nobody joined */
    OK(join_as(1, &attempt));
    OK(commit("x", attempt, 1, 1));
    uint64_t head = head_number();
    OK(commit("x", attempt, 1, 1));
    CHECK_EQ(head_number(), head); /* once is enough */
    CHECK_EQ(commit("x", attempt, 1, 2), -EEXIST);
    CHECK(strstr(weir_error_text(), "other parts"));
    OK(commit("x", attempt, 2, 3)); /* the same name again is another save */
    CHECK(!strcmp(entries(), "x-1.1 x-1.2"));
    struct weir_ledger_state state;
    OK(weir_ledger_read(ledger, &state));
    CHECK_EQ(weir_ledger_find(&state, "x")->save.number, 2);
    CHECK_EQ(weir_ledger_find(&state, NULL)->save.number, 2);
    CHECK(!weir_ledger_find(&state, "y"));
    struct weir_save one = save_of("x", attempt, 1), none = save_of("y", attempt, 1);
    CHECK_EQ(weir_ledger_find_save(&state, &one)->root[0], 1);
    CHECK(!weir_ledger_find_save(&state, &none));
    weir_state_free(&state);
}

/* One that was finished late, for somebody who died, does not become the newest. */
static void late_finish_keeps_the_order(void)
{
    uint64_t attempt, next;
    fresh_ledger();
    OK(join_as(1, &attempt));
    OK(commit("a", attempt, 1, 1));
    OK(commit("d", attempt, 4, 1));
    OK(commit("b", attempt, 2, 1));
    OK(commit("c", attempt, 3, 1));
    CHECK(!strcmp(entries(), "a-1.1 b-1.2 c-1.3 d-1.4"));
    OK(join_as(2, &next));
    OK(commit("f", next, 2, 1));
    OK(commit("e", next, 1, 1)); /* never before what another attempt has committed */
    CHECK(!strcmp(entries(), "a-1.1 b-1.2 c-1.3 d-1.4 e-6.1 f-6.2"));
    struct weir_ledger_state state;
    OK(weir_ledger_read(ledger, &state));
    CHECK(!strcmp(weir_ledger_find(&state, NULL)->save.name, "f"));
    weir_state_free(&state);
}

/* A state with that many entries, appended as it is. */
static void append_state(size_t count)
{
    struct weir_ledger_state state;
    size_t size;
    OK(weir_ledger_read(ledger, &state));
    free(state.entries);
    state.entries = calloc(count, sizeof *state.entries);
    for (state.count = 0; state.count < count; state.count++) {
        struct weir_ledger_entry *entry = &state.entries[state.count];
        entry->save = save_of("", state.attempt, state.count + 1);
        memset(entry->save.name, 'n', WEIR_SAVE_NAME_BYTES_MAX);
    }
    uint8_t *bytes = weir_state_encode(&state, &size);
    CHECK(bytes && size <= WEIR_LOG_STATE_BYTES_MAX); /* the largest state is one a log takes */
    OK(weir_log_append(weir_ledger_log(ledger), &state.record, bytes, size));
    free(bytes);
    weir_state_free(&state);
}

static void entries_are_limited(void)
{
    uint64_t attempt;
    size_t count = 0;
    struct weir_ledger_state state;
    fresh_ledger();
    for (unsigned i = 0; i <= WEIR_TOKENS_MAX; i++)
        OK(join_as(i, &attempt));
    append_state(WEIR_ENTRIES_MAX - 1);
    OK(commit("last", attempt, WEIR_ENTRIES_MAX, 1));
    CHECK_EQ(commit("more", attempt, WEIR_ENTRIES_MAX + 1, 1), -E2BIG);
    CHECK(strstr(weir_error_text(), "retire"));
    OK(commit("last", attempt, WEIR_ENTRIES_MAX, 1));
    OK(weir_ledger_retire(ledger, attempt, is_named, "last", &count));
    CHECK_EQ(count, 1);
    CHECK_EQ(commit("more", attempt, WEIR_ENTRIES_MAX + 1, 1), -E2BIG);
    OK(weir_ledger_forget(ledger, is_any, NULL));
    OK(commit("more", attempt, WEIR_ENTRIES_MAX + 1, 1));
    OK(weir_ledger_read(ledger, &state));
    CHECK_EQ(state.count, WEIR_ENTRIES_MAX);
    weir_state_free(&state);
}

/* ---- retiring, forgetting, giving up ---- */

static void retiring(void)
{
    uint64_t attempt, next;
    size_t count = 99;
    fresh_ledger();
    OK(join_as(1, &attempt));
    OK(commit("a", attempt, 1, 1));
    OK(commit("b", attempt, 2, 1));
    OK(commit("a", attempt, 3, 1));
    OK(weir_ledger_retire(ledger, attempt, is_named, "a", &count));
    CHECK_EQ(count, 2);
    CHECK(!strcmp(entries(), "a-1.1! b-1.2 a-1.3!"));
    uint64_t head = head_number();
    OK(weir_ledger_retire(ledger, attempt, is_named, "a", &count));
    CHECK_EQ(count, 0);
    CHECK_EQ(head_number(), head);
    struct weir_ledger_state state;
    OK(weir_ledger_read(ledger, &state));
    CHECK(!weir_ledger_find(&state, "a"));
    CHECK_EQ(weir_ledger_find(&state, NULL)->save.number, 2);
    weir_state_free(&state);
    OK(commit("a", attempt, 1, 1)); /* it was, and is not taken back */
    OK(join_as(2, &next));
    count = 99;
    CHECK_EQ(weir_ledger_retire(ledger, attempt, is_any, NULL, &count), -ESTALE);
    CHECK_EQ(count, 99);
    OK(weir_ledger_retire(ledger, 0, is_any, NULL, &count)); /* by hand */
    CHECK_EQ(count, 1);
    CHECK(!strcmp(entries(), "a-1.1! b-1.2! a-1.3!"));
}

static void forgetting(void)
{
    uint64_t attempt, next;
    size_t count;
    fresh_ledger();
    OK(join_as(1, &attempt));
    OK(commit("a", attempt, 1, 1));
    OK(commit("b", attempt, 3, 1));
    OK(commit("c", attempt, 5, 1));
    OK(weir_ledger_forget(ledger, is_any, NULL)); /* only what is retired */
    CHECK(!strcmp(entries(), "a-1.1 b-1.3 c-1.5"));
    OK(weir_ledger_retire(ledger, attempt, is_named, "b", &count));
    OK(weir_ledger_forget(ledger, is_named, "a"));
    CHECK(!strcmp(entries(), "a-1.1 b-1.3! c-1.5"));
    OK(weir_ledger_forget(ledger, is_named, "b"));
    CHECK(!strcmp(entries(), "a-1.1 c-1.5"));
    CHECK_EQ(commit("b", attempt, 3, 1), -ESTALE); /* its bytes are gone: never again */
    CHECK(strstr(weir_error_text(), "was given up, or retired and deleted"));
    CHECK_EQ(commit("z", attempt, 2, 1), -ESTALE);
    OK(commit("a", attempt, 1, 1));
    OK(commit("d", attempt, 4, 1));
    CHECK(!strcmp(entries(), "a-1.1 d-1.4 c-1.5"));
    OK(join_as(2, &next)); /* a new attempt counts from 1 */
    OK(commit("e", next, 1, 1));
    OK(weir_ledger_retire(ledger, next, is_named, "c", &count));
    OK(weir_ledger_forget(ledger, is_named, "c")); /* of an older attempt: no floor of this one */
    OK(commit("f", next, 2, 1));
    CHECK_EQ(commit("c", attempt, 5, 1), -ESTALE);
}

static void giving_up(void)
{
    uint64_t attempt, next;
    fresh_ledger();
    OK(join_as(1, &attempt));
    OK(commit("b", attempt, 2, 1));
    OK(weir_ledger_give_up(ledger, attempt, 3));
    uint64_t head = head_number();
    OK(weir_ledger_give_up(ledger, attempt, 2)); /* never down */
    CHECK_EQ(head_number(), head);
    CHECK_EQ(commit("a", attempt, 1, 1), -ESTALE);
    CHECK_EQ(commit("c", attempt, 3, 1), -ESTALE);
    OK(commit("b", attempt, 2, 1));
    OK(commit("d", attempt, 4, 1));
    OK(join_as(2, &next));
    head = head_number();
    OK(weir_ledger_give_up(ledger, attempt, 9)); /* that one is over anyhow */
    CHECK_EQ(head_number(), head);
    OK(commit("a", next, 1, 1));
}

/* ---- labels ---- */

/* Which save has the label: its number, or 0. */
static uint64_t labelled(const char *label)
{
    struct weir_ledger_state state;
    OK(weir_ledger_read(ledger, &state));
    const struct weir_ledger_entry *entry = weir_ledger_find_label(&state, label);
    uint64_t number = entry ? entry->save.number : 0;
    weir_state_free(&state);
    return number;
}

static void labels_protect(void)
{
    uint64_t attempt;
    size_t count;
    struct weir_save was;
    fresh_ledger();
    OK(join_as(1, &attempt));
    OK(commit("a", attempt, 1, 1));
    OK(commit("c", attempt, 3, 1));
    struct weir_save a = save_of("a", attempt, 1), b = save_of("b", attempt, 2);
    CHECK_EQ(weir_ledger_label(ledger, "best", &b, NULL), -ESTALE); /* there is none yet */
    OK(weir_ledger_label(ledger, "best", &a, &was));
    CHECK_EQ(was.parts, 0);
    OK(weir_ledger_label(ledger, "also", &a, NULL));
    OK(commit("b", attempt, 2, 1)); /* late: it comes before the third */
    uint64_t head = head_number();
    OK(weir_ledger_label(ledger, "best", &a, NULL)); /* it is so already */
    CHECK_EQ(head_number(), head);
    OK(weir_ledger_retire(ledger, attempt, is_any, NULL, &count));
    CHECK_EQ(count, 2);
    CHECK(!strcmp(entries(), "a-1.1 b-1.2! c-1.3!"));
    OK(weir_ledger_forget(ledger, is_any, NULL));
    CHECK_EQ(labelled("best"), 1);
    OK(weir_ledger_unlabel(ledger, "best", &was));
    CHECK_EQ(was.number, 1);
    CHECK_EQ(weir_ledger_unlabel(ledger, "best", &was), -ENOENT);
    OK(weir_ledger_retire(ledger, 0, is_any, NULL, &count)); /* it has another one */
    CHECK_EQ(count, 0);
    OK(weir_ledger_unlabel(ledger, "also", NULL));
    OK(weir_ledger_retire(ledger, 0, is_any, NULL, &count));
    CHECK_EQ(count, 1);
    CHECK_EQ(weir_ledger_label(ledger, "best", &a, NULL), -ESTALE); /* too late */
}

/* It is of one save at a time, and moves in one record. */
static void labels_move(void)
{
    uint64_t attempt;
    struct weir_save was;
    char many[16];
    fresh_ledger();
    OK(join_as(1, &attempt));
    OK(commit("a", attempt, 1, 1));
    OK(commit("b", attempt, 2, 1));
    struct weir_save a = save_of("a", attempt, 1), b = save_of("b", attempt, 2);
    OK(weir_ledger_label(ledger, "best", &a, NULL));
    uint64_t head = head_number();
    OK(weir_ledger_label(ledger, "best", &b, &was));
    CHECK(was.number == 1 && labelled("best") == 2 && head_number() == head + 1);
    for (unsigned i = 1; i < WEIR_LABELS_MAX; i++) {
        snprintf(many, sizeof many, "n%u", i);
        OK(weir_ledger_label(ledger, many, &a, NULL));
    }
    CHECK_EQ(weir_ledger_label(ledger, "more", &a, NULL), -E2BIG);
    struct weir_save c = save_of("c", attempt, 3); /* what is saved is worth more than its name */
    const uint8_t root[WEIR_SHA256_BYTES] = {1};
    OK(weir_ledger_commit(ledger, &c, root, "more"));
    CHECK(labelled("more") == 0 && strstr(entries(), "c-"));
    OK(weir_ledger_label(ledger, "best", &a, NULL)); /* moving is no more */
    CHECK_EQ(labelled("n255"), 1);
    static const char *const wrong[] = {"", "12", "newest", "a,b", "a:b", "a/b", ".."};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(weir_ledger_label(ledger, wrong[i], &a, NULL), -EINVAL);
    char longest[WEIR_LABEL_BYTES_MAX + 2];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CHECK_EQ(weir_ledger_label(ledger, longest, &a, NULL), -EINVAL);
}

/* Bytes that say something else than a label of a live entry. */
static void damaged_labels(void)
{
    uint64_t attempt;
    struct weir_ledger_state state, back;
    size_t size;
    fresh_ledger();
    OK(join_as(1, &attempt));
    OK(commit("a", attempt, 1, 1));
    struct weir_save a = save_of("a", attempt, 1);
    OK(weir_ledger_label(ledger, "x", &a, NULL));
    OK(weir_ledger_label(ledger, "y", &a, NULL));
    OK(weir_ledger_read(ledger, &state));
    uint8_t *bytes = weir_state_encode(&state, &size);
    CHECK_EQ(bytes[0], 2); /* an older Weir, which would lose them, refuses it */
    for (size_t cut = 0; cut < size; cut++)
        CHECK_EQ(weir_state_decode(&back, bytes, cut), -EBADMSG);
    /* The last 18 bytes: entry, length, "x", entry, length, "y". */
    static const struct {
        size_t from_end;
        uint8_t byte;
    } wrong[] = {{18, 1}, {14, 2}, {10, '7'}, {10, 'y'}, {10, 'z'}, {1, 'x'}, {1, ':'}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t *at = bytes + size - wrong[i].from_end, good = *at;
        *at = wrong[i].byte;
        CHECK_EQ(weir_state_decode(&back, bytes, size), -EBADMSG);
        *at = good;
    }
    OK(weir_state_decode(&back, bytes, size));
    weir_state_free(&back);
    bytes[0] = 1; /* nor does version 1 have any */
    CHECK_EQ(weir_state_decode(&back, bytes, size), -EBADMSG);
    free(bytes);
    state.entries[0].retired_ns = 1;
    bytes = weir_state_encode(&state, &size);
    CHECK_EQ(weir_state_decode(&back, bytes, size), -EBADMSG);
    free(bytes);
    weir_state_free(&state);
    OK(weir_ledger_unlabel(ledger, "x", NULL));
    OK(weir_ledger_unlabel(ledger, "y", NULL));
    OK(weir_ledger_read(ledger, &state));
    CHECK_EQ(((const uint8_t *)state.record.state)[0], 1);
    weir_state_free(&state);
}

/* ---- names ---- */

static void names(void)
{
    char text[WEIR_SAVE_TEXT_BYTES], name[WEIR_KEY_BYTES_MAX + 1], prefix[WEIR_KEY_BYTES_MAX + 1];
    struct weir_ledger *long_one;
    struct weir_save back, save = save_of("1000", 12, 3);
    weir_save_text(text, &save);
    CHECK(!strcmp(text, "1000-12.3"));
    memset(save.name, 'x', WEIR_SAVE_NAME_BYTES_MAX);
    save.attempt = save.number = UINT64_MAX;
    weir_save_text(text, &save);
    CHECK(strlen(text) < WEIR_SAVE_TEXT_BYTES && strlen(text) <= WEIR_PART_BYTES_MAX);
    CHECK(weir_save_of_text(&back, text, strlen(text)) && weir_save_same(&save, &back));
    static const char *const none[] = {
        "",       "a",       "-1.1",   "a-1",    "a-1.",
        "a-.1",   "a-0.1",   "a-1.0",  "a-01.1", "a-1.01",
        "a-1.1x", "a-1.1.1", "a-1.+1", "a- 1.1", "a-18446744073709551616.1"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK(!weir_save_of_text(&back, none[i], strlen(none[i])));
    CHECK(weir_save_of_text(&back, "a-b-1.2", 7) && !strcmp(back.name, "a-b"));
    OK(weir_save_name_check("step-1.5"));
    CHECK_EQ(weir_save_name_check("a/b"), -EINVAL);
    CHECK_EQ(weir_save_name_check(""), -EINVAL);
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 200 == 199 ? '/' : 'l';
    name[sizeof name - 1] = 0;
    CHECK_EQ(weir_ledger_open(&long_one, store, name), -ENAMETOOLONG);
    name[WEIR_KEY_BYTES_MAX - WEIR_SAVE_TEXT_BYTES - 256] = 0;
    OK(weir_ledger_open(&long_one, store, name));
    weir_ledger_prefix(long_one, &save, prefix);
    CHECK(strlen(prefix) + 1 + WEIR_PART_BYTES_MAX <= WEIR_KEY_BYTES_MAX);
    weir_ledger_close(long_one);
}

/* ---- all of them ---- */

static char seen[256];

static int see(void *arg, const char *name)
{
    (void)arg;
    size_t used = strlen(seen);
    snprintf(seen + used, sizeof seen - used, "%s ", name);
    return 0;
}

static void make_ledger(weir_store *in, const char *name, unsigned records)
{
    struct weir_ledger *one;
    uint64_t attempt;
    OK(weir_ledger_open(&one, in, name));
    for (unsigned i = 0; i < records; i++) {
        struct token token = token_of(i);
        OK(weir_ledger_join(one, token.bytes, &attempt));
    }
    weir_ledger_close(one);
}

/* Each once, also without its first record; what cannot be one is no reason to stop. */
static void each_ledger(void)
{
    static const char *const dirs[] = {"a", "~", "b~", "c~", "d~", "d~/x~", ".weir~"};
    static const char *const others[] = {"00000000000000000001",       "a/00000000000000000001",
                                         "~/00000000000000000001",     "b~/00000000000000000000",
                                         "c~/0000000000000000001",     "d~/x~/00000000000000000001",
                                         ".weir~/00000000000000000001"};
    char name[64];
    const char *dir = tmp_path("store");
    weir_store *files = store_at(dir, "inline");
    OK(weir_ledger_each(files, see, NULL));
    CHECK(!strcmp(seen, ""));
    make_ledger(files, "one", 5);
    CHECK(unlink(path_in(dir, ".weir/log/one~/00000000000000000001")) == 0);
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        snprintf(name, sizeof name, ".weir/log/%s", dirs[i]);
        CHECK(mkdir(path_in(dir, name), 0755) == 0);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(name, sizeof name, ".weir/log/%s", others[i]);
        file_write(path_in(dir, name), "x", 1);
    }
    OK(weir_ledger_each(files, see, NULL));
    CHECK(!strcmp(seen, "one "));
    weir_store_close(files);
}

/* ---- bytes that are no state ---- */

static void damaged_states(void)
{
    uint64_t attempt;
    struct weir_ledger_state state, back;
    size_t size;
    fresh_ledger();
    OK(join_as(1, &attempt));
    OK(join_as(2, &attempt));
    OK(commit("a", attempt, 1, 1));
    OK(commit("b", attempt, 2, 1));
    OK(weir_ledger_read(ledger, &state));
    uint8_t *bytes = weir_state_encode(&state, &size);
    OK(weir_state_decode(&back, bytes, size));
    CHECK(back.count == 2 && back.past_count == 1 && back.attempt == attempt);
    weir_state_free(&back);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *some = malloc(cut ? cut : 1);
        memcpy(some, bytes, cut);
        CHECK_EQ(weir_state_decode(&back, some, cut), -EBADMSG);
        free(some);
    }
    bytes[0] = 3;
    CHECK_EQ(weir_state_decode(&back, bytes, size), -EPROTO);
    bytes[0] = 1;
    for (size_t at = 40; at < 48; at++) { /* the counts */
        bytes[at] ^= 0x40;
        CHECK_EQ(weir_state_decode(&back, bytes, size), -EBADMSG);
        bytes[at] ^= 0x40;
    }
    bytes[size - 1] = '/'; /* the last name */
    CHECK_EQ(weir_state_decode(&back, bytes, size), -EBADMSG);
    /* A record that holds none is said to be the log's. */
    OK(weir_log_append(weir_ledger_log(ledger), &state.record, bytes, size));
    CHECK_EQ(join_as(2, &attempt), -EBADMSG);
    CHECK(strstr(weir_error_text(), weir_ledger_name(ledger)));
    free(bytes);
    weir_state_free(&state);
}

int main(void)
{
    store = store_at("mem:?size=512M", "inline");
    RUN(joining);
    RUN(many_incarnations);
    RUN(committing);
    RUN(late_finish_keeps_the_order);
    RUN(entries_are_limited);
    RUN(retiring);
    RUN(forgetting);
    RUN(giving_up);
    RUN(labels_protect);
    RUN(labels_move);
    RUN(damaged_labels);
    RUN(names);
    RUN(each_ledger);
    RUN(damaged_states);
    weir_ledger_close(ledger);
    weir_store_close(store);
    return TEST_RESULT;
}
