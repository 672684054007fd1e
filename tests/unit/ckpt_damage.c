/* Whatever happens to the files of a committed checkpoint, a load answers the bytes that were saved
 * or an error that names the file, the tensor and the bytes: never others.
 */
#include <ftw.h>

#include "stores.h"

enum { RANKS = 2, BIG = (2 << 20) - 4096, SMALL = 5000, FLIPS = 120, FILES_MAX = 200 };
#define LONG_NS  300000000000ull
#define RUN_NAME "run"

static weir_store *store;
static const char *dir;

/* ---- two checkpoints, of steps 1 and 2: a large tensor in halves, small ones in the block behind
 * it ---- */

static uint8_t big[2][2 * BIG], small[2][SMALL];
static const char *const small_names[RANKS] = {"small.of.0", "small.of.1"};

static void save_step(weir_ckpt *const ckpt[RANKS], uint64_t step)
{
    static const uint64_t whole[] = {2 * BIG}, half[] = {BIG}, few[] = {SMALL};
    weir_saving *saving[RANKS];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const uint64_t offset[] = {(uint64_t)rank * BIG};
        char state[64];
        const weir_tensor tensors[] = {
            {.name = "big",
             .dtype = "U8",
             .ndim = 1,
             .shape = half,
             .global_shape = whole,
             .offset = offset,
             .data = big[step - 1] + offset[0]},
            {.name = small_names[rank],
             .dtype = "U8",
             .ndim = 1,
             .shape = few,
             .data = small[step - 1]},
        };
        snprintf(state, sizeof state, "{\"step\": %d, \"rank\": %u}", (int)step, rank);
        weir_save_options opts = {
            .struct_size = sizeof opts, .meta = rank ? NULL : "{\"meta\": 1}", .state = state};
        OK(weir_ckpt_save(ckpt[rank], step, tensors, 2, &opts, &saving[rank]));
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        OK(weir_saving_wait(saving[rank], WEIR_LEVEL_HOME, LONG_NS));
        weir_saving_close(saving[rank]);
    }
}

static void save_both(void)
{
    static const uint8_t token[16] = {1};
    weir_ckpt *ckpt[RANKS];
    weir_ckpt_options opts;
    for (uint64_t i = 0; i < 2; i++) {
        data_fill(big[i], sizeof big[i], 10 + i, 0);
        data_fill(small[i], sizeof small[i], 20 + i, 0);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        weir_ckpt_options_init(&opts);
        opts.rank = rank;
        opts.ranks = RANKS;
        opts.token = token;
        opts.staging_bytes_max = 4 << 20;
        OK(weir_ckpt_open(&ckpt[rank], store, RUN_NAME, &opts));
    }
    save_step(ckpt, 1);
    save_step(ckpt, 2);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        weir_ckpt_close(ckpt[rank]);
}

static const char *key_of(const char *name)
{
    static char key[4][200];
    static unsigned turn;
    char *out = key[turn++ % 4];
    snprintf(out, sizeof key[0], "ckpt/" RUN_NAME "/2-1.2/%s", name);
    return out;
}

/* Loads all of the newest: 0 and exact, or the code of the first failure. */
static int load_newest(void)
{
    static uint8_t copy[2 * BIG], few[RANKS][SMALL];
    weir_restore *restore;
    int code = weir_restore_open(&restore, store, RUN_NAME, WEIR_STEP_NEWEST);
    if (code)
        return code;
    const weir_restore_info *info = weir_restore_info_get(restore);
    CHECK(info->step == 2 && info->tensors == 3 && !strcmp(info->meta, "{\"meta\": 1}"));
    memset(copy, 0, sizeof copy);
    memset(few, 0, sizeof few);
    const weir_slice slices[] = {
        {.tensor = (size_t)weir_restore_find(restore, "big"), .data = copy},
        {.tensor = (size_t)weir_restore_find(restore, small_names[0]), .data = few[0]},
        {.tensor = (size_t)weir_restore_find(restore, small_names[1]), .data = few[1]},
    };
    code = weir_restore_read(restore, slices, 3, NULL, NULL);
    if (!code)
        CHECK(!memcmp(copy, big[1], sizeof copy) && !memcmp(few[0], small[1], SMALL) &&
              !memcmp(few[1], small[1], SMALL));
    for (uint32_t rank = 0; !code && rank < RANKS; rank++) {
        char *state, want[64];
        code = weir_restore_state(restore, rank, &state);
        if (code)
            break;
        snprintf(want, sizeof want, "{\"step\": 2, \"rank\": %u}", rank);
        CHECK(!strcmp(state, want));
        free(state);
    }
    weir_restore_close(restore);
    return code;
}

/* ---- one file at a time, and back ---- */

struct original {
    char path[2 * PATH_MAX];
    void *bytes;
    size_t size;
};

static struct original take(const char *path)
{
    struct original o;
    snprintf(o.path, sizeof o.path, "%s", path);
    o.bytes = file_read(path, &o.size);
    return o;
}

static void replace(const struct original *o, const void *bytes, size_t size)
{
    int fd = file_force_open(o->path);
    CHECK(ftruncate(fd, (off_t)size) == 0);
    CHECK_EQ(pwrite(fd, bytes, size, 0), (ssize_t)size);
    close(fd);
}

static void give_back(struct original *o)
{
    replace(o, o->bytes, o->size);
    free(o->bytes);
}

/* The load fails so, and says all of that. */
static void bad(const char *a, const char *b, const char *c)
{
    const char *words[] = {a, b, c};
    CHECK_EQ(load_newest(), -EBADMSG);
    for (unsigned i = 0; i < 3; i++) {
        if (words[i] && !strstr(weir_error_text(), words[i]))
            fprintf(stderr, "'%s' should be in: %s\n", words[i], weir_error_text());
        CHECK(!words[i] || strstr(weir_error_text(), words[i]));
    }
}

static struct original take_object(const char *name)
{
    char *path = data_path(store, dir, key_of(name));
    struct original o = take(path);
    free(path);
    return o;
}

#define FILE_0 "model-00001-of-00002.safetensors"

static void files(void)
{
    struct original o = take_object(FILE_0);
    uint8_t *other = malloc(o.size);
    memcpy(other, o.bytes, o.size);
    memset(other + o.size / 2, 0, 1000); /* zeros in the middle */
    replace(&o, other, o.size);
    bad(FILE_0, "tensor 'big'", "bytes 1048576-2097151");
    replace(&o, o.bytes, o.size - 1); /* cut short */
    bad(FILE_0, NULL, NULL);
    memcpy(other, o.bytes,
           o.size); /* one bit, in the small one, which is read with the large one */
    other[o.size - 1] ^= 4;
    replace(&o, other, o.size);
    bad(FILE_0, "tensor 'small.of.0'", "bytes 2097152-");
    memcpy(other, o.bytes, o.size); /* the header, which names the tensors for others */
    memcpy(strstr((char *)other + 8, "small"), "SMALL", 5);
    replace(&o, other, o.size);
    bad(FILE_0, "tensor 'big'", NULL);
    free(other);
    char *path = data_path(store, dir, "ckpt/" RUN_NAME "/1-1.1/" FILE_0); /* of another step */
    struct original first = take(path);
    CHECK_EQ(first.size, o.size);
    replace(&o, first.bytes, first.size);
    bad(FILE_0, "tensor 'big'", NULL);
    free(first.bytes);
    free(path);
    give_back(&o);
    OK(load_newest());
}

/* Sealed anew, as a tool would that knows no better: the log names another seal. */
static void put_anew(const char *key, const void *bytes, size_t size)
{
    weir_put *put;
    OK(weir_remove(store, key));
    OK(weir_put_open(&put, store, key, NULL));
    OK(weir_put_write(put, bytes, size));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
}

static void texts(void)
{
    static const char *const names[] = {"state-00002.json", "checkpoint.json"};
    for (unsigned i = 0; i < 2; i++) {
        struct original o = take_object(names[i]);
        char *text = strndup(o.bytes, o.size);
        text[o.size - 2] ^= 1;
        replace(&o, text, o.size);
        bad(names[i], NULL, NULL);
        replace(&o, "", 0);
        bad(names[i], NULL, NULL);
        free(text);
        give_back(&o);
        OK(load_newest());
    }
}

/* The merged manifest is an index: whatever is wrong with it, there are the ranks' own. */
static void manifests(void)
{
    struct original merged = take_object("manifest"), of_0 = take_object("manifest-00001");
    char *path = data_path(store, dir, "ckpt/" RUN_NAME "/1-1.1/manifest");
    struct original old = take(path);
    free(path);
    uint8_t *other = malloc(merged.size);
    for (size_t at = 0; at < merged.size; at += 41) {
        memcpy(other, merged.bytes, merged.size);
        other[at] ^= 1;
        replace(&merged, other, merged.size);
        OK(load_newest());
    }
    free(other);
    replace(&merged, "", 0);
    OK(load_newest());
    char *of_1_path = data_path(store, dir, key_of("manifest-00002"));
    struct original of_1 = take(of_1_path);
    replace(&of_0, of_1.bytes, of_1.size); /* and now there are not */
    bad("manifest-00001", NULL, NULL);
    give_back(&of_0);
    give_back(&merged);
    OK(load_newest());
    put_anew(key_of("manifest"), old.bytes, old.size); /* of another step, and sealed */
    OK(load_newest());
    put_anew(key_of("manifest-00001"), of_1.bytes, of_1.size);
    bad("manifest-00001", NULL, NULL);
    free(of_1.bytes);
    free(of_1_path);
    free(old.bytes);
}

static int note_damage(void *arg, const weir_damage *damage)
{
    char(*key)[200] = arg;
    snprintf(*key, sizeof *key, "%s", damage->key);
    return 0;
}

/* A rank's own manifest is looked at, too, though the merged one, which is whole, does for a load.
 */
static void verify_manifests(void)
{
    struct original o = take_object("manifest-00001");
    weir_restore *restore;
    char key[200] = "";
    uint8_t *other = malloc(o.size);
    memcpy(other, o.bytes, o.size);
    other[o.size / 2] ^= 1;
    replace(&o, other, o.size);
    free(other);
    OK(load_newest());
    OK(weir_restore_open(&restore, store, RUN_NAME, WEIR_STEP_NEWEST));
    CHECK_EQ(weir_restore_verify(restore, note_damage, NULL, &key), -EBADMSG);
    CHECK(!strcmp(key, key_of("manifest-00001")));
    give_back(&o);
    OK(weir_restore_verify(restore, NULL, NULL, NULL));
    weir_restore_close(restore);
}

static void another_seal(void)
{
    struct original o = take_object(FILE_0);
    put_anew(key_of(FILE_0), o.bytes, o.size); /* the same bytes, even: not what was committed */
    bad(FILE_0, "tensor 'big'", "not what log 'ckpt/" RUN_NAME "' committed");
    free(o.bytes);
}

/* ---- any bit of any file ---- */

static char *paths[FILES_MAX];
static unsigned path_count;

static int note_path(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)where;
    if (type == FTW_F && st->st_size && !strstr(path, "index.json") && path_count < FILES_MAX)
        paths[path_count++] = strdup(path);
    return 0;
}

/* Not every bit matters for a load: but none may change what it answers. */
static void any_bit(void)
{
    struct rng rng = {7};
    unsigned failed = 0;
    nftw(path_in(dir, ".weir"), note_path, 16, FTW_PHYS);
    CHECK(path_count > 20);
    for (unsigned i = 0; i < FLIPS; i++) {
        struct original o = take(paths[i % path_count]);
        uint64_t bit = rng_below(&rng, 8 * o.size);
        int fd = file_force_open(o.path);
        fd_flip(fd, bit);
        close(fd);
        int code = load_newest();
        failed += code != 0;
        CHECK(!code || code == -EBADMSG || code == -EPROTO);
        give_back(&o);
    }
    OK(load_newest());
    printf("%u of %u flipped bits were refused, the others were not needed\n", failed, FLIPS);
    CHECK(failed > FLIPS / 10);
}

int main(void)
{
    dir = tmpdir();
    store = store_at(dir, NULL);
    save_both();
    OK(load_newest());
    RUN(files);
    RUN(texts);
    RUN(any_bit);
    RUN(manifests);
    weir_store_close(store);
    tree_remove(dir);
    mkdir(dir, 0755);
    store = store_at(dir, NULL);
    save_both();
    RUN(verify_manifests);
    RUN(another_seal);
    weir_store_close(store);
    return TEST_RESULT;
}
