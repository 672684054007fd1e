/* A store that is guarded reads what was signed, and nothing else, whatever blocks its objects and
 * the manifest have; the reader of the bytes need not know.
 */
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "data/blocks.h"
#include "data/proof.h"
#include "data/trust.h"
#include "stores.h"
#include "test.h"
#include "tmpdir.h"

enum { SIZE = 3 * (1 << 20) + 12345, KEYS = 2 };

static struct {
    char private[256], public[256];
} pem[KEYS];

static void write_pem(char *out, size_t room, EVP_PKEY *key, int is_private)
{
    BIO *bio = BIO_new(BIO_s_mem());
    if (is_private)
        PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    else
        PEM_write_bio_PUBKEY(bio, key);
    int size = BIO_read(bio, out, (int)room - 1);
    CHECK(size > 0);
    out[size] = 0;
    BIO_free(bio);
}

static void make_keys(void)
{
    for (int i = 0; i < KEYS; i++) {
        EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        CHECK(key);
        write_pem(pem[i].private, sizeof pem[i].private, key, 1);
        write_pem(pem[i].public, sizeof pem[i].public, key, 0);
        EVP_PKEY_free(key);
    }
}

static uint8_t content[SIZE];

static weir_store *open_store(const char *path, uint32_t flags)
{
    weir_store *store;
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = flags;
    OK(weir_store_open(&store, path, &opts));
    return store;
}

static void put(weir_store *store, const char *key, size_t size, uint32_t block_bytes)
{
    weir_put *put;
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.block_bytes = block_bytes;
    OK(weir_put_open(&put, store, key, &opts));
    OK(weir_put_write(put, content, size));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
}

/* A signed dataset: two sealed files, one empty, and one that others put there. */
static const char *make_dataset(uint32_t block_bytes)
{
    const char *path = tmp_path("store");
    weir_store *store = open_store(path, WEIR_STORE_CREATE);
    struct weir_proof proof;
    const struct weir_hashing how = {.prefix = "d/", .threads = 2};
    put(store, "d/small", SIZE, 65536);
    put(store, "d/large", SIZE, 1 << 20);
    put(store, "d/empty", 0, 65536);
    put(store, "d/late", 10, 65536);
    put(store, "beside", 10, 65536);
    file_write(path_in(path, "d/plain"), content, SIZE);
    OK(weir_remove(store, "d/late"));
    OK(weir_proof_make(&proof, store, block_bytes, &how));
    put(store, "d/late", 10, 65536);
    OK(weir_sign(proof.signature, NULL, pem[0].private, strlen(pem[0].private), proof.sums,
                 proof.sums_size));
    proof.is_signed = true;
    OK(weir_proof_keep(&proof, store, "d/"));
    weir_proof_free(&proof);
    weir_store_close(store);
    return path;
}

static int trust(struct weir_trust **out, weir_store *store, int key)
{
    return weir_trust_open(out, "d/", store, "d/", pem[key].public, strlen(pem[key].public));
}

static int read_at(weir_store *store, const char *key, uint64_t off, size_t size)
{
    static uint8_t buf[SIZE];
    weir_object *obj;
    size_t got;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    code = weir_object_read(obj, buf, size, off, &got);
    if (!code)
        CHECK(!memcmp(buf, content + off, got));
    weir_object_close(obj);
    return code;
}

static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    CHECK(f && !fseek(f, at, SEEK_SET));
    int c = fgetc(f);
    CHECK(!fseek(f, at, SEEK_SET) && fputc(c ^ 1, f) != EOF && !fclose(f));
}

static void read_all(weir_store *store)
{
    static const char *const names[] = {"d/small", "d/large", "d/plain"};
    for (int i = 0; i < 3; i++) {
        OK(read_at(store, names[i], 0, SIZE));
        OK(read_at(store, names[i], SIZE - 1, 1));
        OK(read_at(store, names[i], (1 << 20) - 1, 2));
        OK(read_at(store, names[i], 70000, 100));
    }
    OK(read_at(store, "d/empty", 0, 0));
}

static void signed_is_read(void)
{
    for (uint32_t block = 65536; block <= 1 << 20; block *= 4) {
        weir_store *store = open_store(make_dataset(block), 0);
        struct weir_trust *t;
        OK(trust(&t, store, 0));
        weir_store_set_guard(store, weir_trust_guard(t));
        read_all(store);
        CHECK_EQ(read_at(store, "d/late", 0, 1), -EKEYREJECTED);
        CHECK(strstr(weir_fail_last(), "not in the signed manifest"));
        CHECK_EQ(read_at(store, "beside", 0, 1), -EKEYREJECTED);
        CHECK_EQ(read_at(store, "d/SHA256SUMS", 0, 1), -EKEYREJECTED);
        weir_store_close(store);
        weir_trust_close(t);
    }
}

/* The sums of the store do not see it: whoever changes a file can change its seal. */
static void changed_is_refused(void)
{
    const char *path = make_dataset(1 << 20);
    struct weir_trust *t;
    weir_store *store;
    flip(path_in(path, "d/plain"), 2 * (1 << 20) + 5);
    store = open_store(path, 0);
    OK(weir_remove(store, "d/small"));
    content[77]++;
    put(store, "d/small", SIZE, 65536);
    content[77]--;
    OK(weir_remove(store, "d/large"));
    put(store, "d/large", SIZE - 1, 65536);
    OK(trust(&t, store, 0));
    weir_store_set_guard(store, weir_trust_guard(t));
    CHECK_EQ(read_at(store, "d/plain", 2 << 20, 1), -EKEYREJECTED);
    CHECK(strstr(weir_fail_last(), "block 2 (bytes 2097152-3145727)"));
    CHECK_EQ(read_at(store, "d/plain", 0, SIZE), -EKEYREJECTED);
    OK(read_at(store, "d/plain", 0, 2 << 20));
    OK(read_at(store, "d/plain", 3 << 20, 1));
    CHECK_EQ(read_at(store, "d/small", 0, 1), -EKEYREJECTED);
    CHECK_EQ(read_at(store, "d/small", 70000, 1), -EKEYREJECTED);
    OK(read_at(store, "d/small", 1 << 20, SIZE));
    CHECK_EQ(read_at(store, "d/large", 0, 1), -EKEYREJECTED);
    CHECK(strstr(weir_fail_last(), "the signed manifest says"));
    weir_store_close(store);
    weir_trust_close(t);
}

static void nothing_else_is_trusted(void)
{
    const char *path = make_dataset(1 << 20);
    weir_store *store = open_store(path, 0);
    struct weir_trust *t;
    struct weir_proof proof;
    CHECK_EQ(trust(&t, store, 1), -EKEYREJECTED);
    CHECK_EQ(weir_trust_open(&t, "d/", store, "", pem[0].public, strlen(pem[0].public)), -ENOENT);
    CHECK_EQ(weir_trust_open(&t, "d/", store, "d/", "nonsense", 8), -EINVAL);
    OK(weir_proof_load(&proof, store, "d/", NULL, 0));
    proof.sums[0] ^= 1;
    OK(weir_proof_keep(&proof, store, "d/")); /* with the old signature */
    CHECK_EQ(trust(&t, store, 0), -EKEYREJECTED);
    proof.sums[0] ^= 1;
    OK(weir_proof_keep(&proof, store, "d/"));
    OK(trust(&t, store, 0));
    weir_trust_close(t);
    proof.blocks[proof.blocks_size - 1] ^= 1;
    OK(weir_proof_keep(&proof, store, "d/"));
    CHECK_EQ(trust(&t, store, 0), -EBADMSG);
    OK(weir_remove(store, "d/SHA256BLOCKS"));
    CHECK_EQ(trust(&t, store, 0), -ENOENT);
    OK(weir_remove(store, "d/SHA256SUMS.sig"));
    proof.blocks[proof.blocks_size - 1] ^= 1;
    proof.is_signed = false;
    OK(weir_proof_keep(&proof, store, "d/"));
    CHECK_EQ(trust(&t, store, 0), -EKEYREJECTED);
    CHECK(strstr(weir_fail_last(), "is not signed"));
    weir_proof_free(&proof);
    weir_store_close(store);
}

int main(void)
{
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 2654435761u >> 13);
    make_keys();
    RUN(signed_is_read);
    RUN(changed_is_refused);
    RUN(nothing_else_is_trusted);
    return TEST_RESULT;
}
