/* s3_answer.c - see s3_answer.h. Lists are rows of cells: a table says which element of which row
 * is which cell, and one function reads all of them. */
#include "tier/s3_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3_sign.h"
#include "tier/s3_xml.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/utf8.h"

/* ---- one text ---- */

/* Servers tell in errors what they were sent, at times with signatures and session tokens. Those
 * are long runs of these characters; a run of so many is not shown, whatever it is. */
enum { SECRET_BYTES_MIN = 32 };
static const char secret_bytes[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_-%.";

static void hide_secrets(char *text)
{
    char *out = text;
    while (*text) {
        size_t run = strspn(text, secret_bytes), rest = run ? run : 1;
        if (run >= SECRET_BYTES_MIN)
            out = stpcpy(out, "...");
        else
            out = (char *)memmove(out, text, rest) + rest;
        text += rest;
    }
    *out = 0;
}

/* A text for people: without what may be secret, cut where it does not fit, at a character's end;
 * what is no printable character becomes a blank. The text is changed, too. */
static void copy_words(char *out, size_t room, char *text)
{
    hide_secrets(text);
    size_t size = strlen(text), used = 0;
    for (size_t n; used < size; used += n) {
        n = weir_utf8_length((const unsigned char *)text + used, size - used);
        if (!n || used + n >= room)
            break;
        memcpy(out + used, text + used, n);
        if (n == 1 && ((unsigned char)out[used] < 0x20 || out[used] == 0x7f))
            out[used] = ' ';
    }
    out[used] = 0;
}

static int take_words(char *out, size_t room, const struct weir_s3_xml *xml)
{
    char *text = weir_alloc(xml->size + 1);
    if (!text)
        return weir_fail_memory();
    weir_s3_xml_text(xml, text);
    copy_words(out, room, text);
    free(text);
    return 0;
}

/* The same, whole: what does not fit, or has a NUL or other control characters, is wrong. */
static int take_word(char *out, size_t room, const struct weir_s3_xml *xml)
{
    if (xml->size >= 8 * room)
        return weir_fail(EBADMSG, "its <%s> is too long", xml->name);
    char *text = weir_alloc(xml->size + 1);
    if (!text)
        return weir_fail_memory();
    int code = 0;
    size_t size = weir_s3_xml_text(xml, text);
    for (size_t i = 0; i < size && !code; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            code = weir_fail(EBADMSG, "its <%s> holds control characters", xml->name);
    if (!code && size >= room)
        code = weir_fail(EBADMSG, "its <%s> is too long", xml->name);
    if (!code)
        memcpy(out, text, size + 1);
    free(text);
    return code;
}

static int begin(struct weir_s3_xml *xml, const char *text, size_t size)
{
    if (size > WEIR_S3_ANSWER_BYTES_MAX)
        return weir_fail(EBADMSG, "it is %zu bytes, the limit is %d", size,
                         WEIR_S3_ANSWER_BYTES_MAX);
    weir_s3_xml_begin(xml, text, size);
    int code = weir_s3_xml_next(xml);
    return code < 0 ? code : 0;
}

static int not_that(const struct weir_s3_xml *xml, const char *want)
{
    return weir_fail(EBADMSG, "it is a <%s>, not a <%s>", xml->name, want);
}

/* ---- errors ---- */

/* One element of an <Error>. */
static int take_error(struct weir_s3_error *out, const struct weir_s3_xml *xml)
{
    if (!strcmp(xml->name, "Code"))
        return take_words(out->code, sizeof out->code, xml);
    if (!strcmp(xml->name, "Message"))
        return take_words(out->message, sizeof out->message, xml);
    if (!strcmp(xml->name, "Region"))
        return take_words(out->region, sizeof out->region, xml);
    return 0;
}

/* The rest of an <Error> whose beginning was read. */
static int read_error(struct weir_s3_error *out, struct weir_s3_xml *xml)
{
    struct weir_s3_error error = {0};
    int code;
    while ((code = weir_s3_xml_next(xml)) == 1)
        if (xml->token == WEIR_S3_XML_CLOSE && weir_s3_xml_in(xml, "Error") && xml->depth == 1)
            if ((code = take_error(&error, xml)))
                return code;
    if (!code && !error.code[0])
        code = weir_fail(EBADMSG, "it is an <Error> without a <Code>");
    if (!code)
        *out = error;
    return code;
}

int weir_s3_answer_error(struct weir_s3_error *out, const char *text, size_t size)
{
    struct weir_s3_xml xml;
    int code = begin(&xml, text, size);
    if (code)
        return code;
    return strcmp(xml.name, "Error") ? not_that(&xml, "Error") : read_error(out, &xml);
}

/* ---- multipart uploads ---- */

/* Reads the one element `name` of a root that was seen; "" if it is not there. */
static int read_one(char *out, size_t room, struct weir_s3_xml *xml, const char *name)
{
    int code;
    out[0] = 0;
    while ((code = weir_s3_xml_next(xml)) == 1)
        if (xml->token == WEIR_S3_XML_CLOSE && xml->depth == 1 && !strcmp(xml->name, name))
            if ((code = take_word(out, room, xml)))
                return code;
    return code;
}

int weir_s3_answer_upload(char out[WEIR_S3_UPLOAD_ID_MAX], const char *text, size_t size)
{
    static const char root[] = "InitiateMultipartUploadResult";
    char id[WEIR_S3_UPLOAD_ID_MAX];
    struct weir_s3_xml xml;
    int code = begin(&xml, text, size);
    if (!code && strcmp(xml.name, root))
        code = not_that(&xml, root);
    if (!code)
        code = read_one(id, sizeof id, &xml, "UploadId");
    if (!code && !id[0])
        code = weir_fail(EBADMSG, "it has no <UploadId>");
    if (!code)
        memcpy(out, id, sizeof id);
    return code;
}

int weir_s3_answer_complete(char etag[WEIR_S3_ETAG_MAX], struct weir_s3_error *error,
                            const char *text, size_t size)
{
    static const char root[] = "CompleteMultipartUploadResult";
    char value[WEIR_S3_ETAG_MAX + 4];
    struct weir_s3_xml xml;
    int code = begin(&xml, text, size);
    if (!code && !strcmp(xml.name, "Error")) {
        code = read_error(error, &xml);
        return code ? code : weir_fail(EREMOTEIO, "%s: %s", error->code, error->message);
    }
    if (!code && strcmp(xml.name, root))
        code = not_that(&xml, root);
    if (!code)
        code = read_one(value, sizeof value, &xml, "ETag");
    if (code)
        return code;
    if (!value[0] || !strcmp(value, "\"\"")) {
        etag[0] = 0;
        return 0;
    }
    return weir_s3_etag(etag, value, strlen(value)) ? 0 : weir_fail(EBADMSG, "its <ETag> is none");
}

/* ---- lists ---- */

enum cell { KEY, SIZE, TIME, ETAG, ID, CODE, MESSAGE, CELLS };
enum head { TRUNCATED, TOKEN, ENCODING, MORE_KEY, MORE_ID, HEADS };

static const struct {
    const char *row, *name;
    enum cell cell;
} cells[] = {
    {"Contents", "Key", KEY},
    {"Contents", "Size", SIZE},
    {"Contents", "LastModified", TIME},
    {"Contents", "ETag", ETAG},
    {"CommonPrefixes", "Prefix", KEY},
    {"Upload", "Key", KEY},
    {"Upload", "UploadId", ID},
    {"Upload", "Initiated", TIME},
    {"Error", "Key", KEY},
    {"Error", "Code", CODE},
    {"Error", "Message", MESSAGE},
};
static const char *const heads[HEADS] = {"IsTruncated", "NextContinuationToken", "EncodingType",
                                         "NextKeyMarker", "NextUploadIdMarker"};

struct list {
    struct weir_arena *arena;
    char *head[HEADS]; /* NULL: not there */
    char *cell[CELLS]; /* of the row being read */
    void *out;
    int (*row)(struct list *list, const char *name); /* one was read */
};

static int take(struct list *list, char **out, const struct weir_s3_xml *xml)
{
    if (*out)
        return weir_fail(EBADMSG, "it has two <%s> where one belongs", xml->name);
    *out = weir_arena_take(&list->arena, xml->size + 1);
    if (!*out)
        return weir_fail_memory();
    weir_s3_xml_text(xml, *out);
    return 0;
}

static int closed(struct list *list, const struct weir_s3_xml *xml)
{
    for (size_t i = 0; xml->depth == 1 && i < HEADS; i++)
        if (!strcmp(xml->name, heads[i]))
            return take(list, &list->head[i], xml);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        if (xml->depth == 2 && weir_s3_xml_in(xml, cells[i].row) &&
            !strcmp(xml->name, cells[i].name))
            return take(list, &list->cell[cells[i].cell], xml);
        if (xml->depth == 1 && !strcmp(xml->name, cells[i].row))
            return list->row(list, xml->name);
    }
    return 0;
}

static int read_list(struct list *list, const char *root, const char *text, size_t size)
{
    struct weir_s3_xml xml;
    int code = begin(&xml, text, size);
    if (!code && strcmp(xml.name, root))
        return not_that(&xml, root);
    while (!code && (code = weir_s3_xml_next(&xml)) == 1) {
        if (xml.token == WEIR_S3_XML_OPEN && xml.depth == 1)
            memset(list->cell, 0, sizeof list->cell);
        code = xml.token == WEIR_S3_XML_CLOSE ? closed(list, &xml) : 0;
    }
    return code;
}

/* In lists, unlike anywhere else, AWS writes a blank as '+'. */
static int decode(struct list *list, char *text)
{
    if (!list->head[ENCODING] || strcmp(list->head[ENCODING], "url") || !text)
        return 0;
    for (char *at = text; (at = strchr(at, '+'));)
        *at = ' ';
    return weir_s3_decode(text) ? weir_fail(EBADMSG, "a name in it has a bad %%XX") : 0;
}

static bool truncated(const struct list *list)
{
    return list->head[TRUNCATED] && !strcmp(list->head[TRUNCATED], "true");
}

/* Room for one more row, in memory that doubles; NULL with a text. */
static void *more_room(void *rows, size_t count, size_t each)
{
    if (count >= WEIR_S3_PAGE_MAX) {
        weir_fail(EBADMSG, "it has more than %d entries", WEIR_S3_PAGE_MAX);
        return NULL;
    }
    if (count & (count - 1))
        return rows;
    void *more = weir_realloc(rows, (count ? 2 * count : 1) * each);
    if (!more)
        weir_fail_memory();
    return more;
}

static int cell_time(int64_t *out, const char *text)
{
    if (text && weir_s3_time_iso(out, text, strlen(text)))
        return 0;
    return weir_fail(EBADMSG, "the time of an entry is none");
}

static int page_row(struct list *list, const char *name)
{
    struct weir_s3_page *page = list->out;
    struct weir_s3_entry entry = {.key = list->cell[KEY], .etag = ""};
    char etag[WEIR_S3_ETAG_MAX];
    const char *text = list->cell[ETAG], *size = list->cell[SIZE];
    if (!entry.key || !entry.key[0])
        return weir_fail(EBADMSG, "an entry has no key");
    if (!strcmp(name, "CommonPrefixes")) {
        entry.is_prefix = true;
    } else {
        if (!size || !weir_s3_number(&entry.size, size, strlen(size)))
            return weir_fail(EBADMSG, "the size of an entry is none");
        int code = cell_time(&entry.time_ns, list->cell[TIME]);
        if (code)
            return code;
        if (text && text[0] && strcmp(text, "\"\"")) {
            if (!weir_s3_etag(etag, text, strlen(text)))
                return weir_fail(EBADMSG, "the ETag of an entry is none");
            entry.etag = strcpy(list->cell[ETAG], etag); /* which is no longer */
        }
    }
    struct weir_s3_entry *more = more_room(page->entries, page->count, sizeof *more);
    if (!more)
        return page->count >= WEIR_S3_PAGE_MAX ? -EBADMSG : -ENOMEM;
    page->entries = more;
    page->entries[page->count++] = entry;
    return 0;
}

int weir_s3_answer_list(struct weir_s3_page *out, const char *text, size_t size)
{
    struct weir_s3_page page = {0};
    struct list list = {.out = &page, .row = page_row};
    int code = read_list(&list, "ListBucketResult", text, size);
    for (size_t i = 0; !code && i < page.count; i++)
        code = decode(&list, (char *)page.entries[i].key);
    if (!code && truncated(&list)) {
        page.more = list.head[TOKEN];
        if (!page.more || !page.more[0])
            code = weir_fail(EBADMSG, "it goes on, but has no <NextContinuationToken>");
    }
    page.arena = list.arena;
    if (code)
        weir_s3_page_free(&page);
    else
        *out = page;
    return code;
}

void weir_s3_page_free(struct weir_s3_page *page)
{
    free(page->entries);
    weir_arena_free(page->arena);
    *page = (struct weir_s3_page){0};
}

static int upload_row(struct list *list, const char *name)
{
    struct weir_s3_uploads *uploads = list->out;
    struct weir_s3_pending one = {list->cell[KEY], list->cell[ID], 0};
    if (strcmp(name, "Upload"))
        return 0; /* a prefix: nobody asked */
    if (!one.key || !one.key[0] || !one.id || !one.id[0])
        return weir_fail(EBADMSG, "an upload has no key or no id");
    int code = cell_time(&one.time_ns, list->cell[TIME]);
    if (code)
        return code;
    struct weir_s3_pending *more = more_room(uploads->pending, uploads->count, sizeof *more);
    if (!more)
        return uploads->count >= WEIR_S3_PAGE_MAX ? -EBADMSG : -ENOMEM;
    uploads->pending = more;
    uploads->pending[uploads->count++] = one;
    return 0;
}

int weir_s3_answer_uploads(struct weir_s3_uploads *out, const char *text, size_t size)
{
    struct weir_s3_uploads uploads = {0};
    struct list list = {.out = &uploads, .row = upload_row};
    int code = read_list(&list, "ListMultipartUploadsResult", text, size);
    for (size_t i = 0; !code && i < uploads.count; i++)
        code = decode(&list, (char *)uploads.pending[i].key);
    if (!code)
        code = decode(&list, list.head[MORE_KEY]);
    if (!code && truncated(&list)) {
        uploads.more_key = list.head[MORE_KEY];
        uploads.more_id = list.head[MORE_ID] ? list.head[MORE_ID] : "";
        if (!uploads.more_key || !uploads.more_key[0])
            code = weir_fail(EBADMSG, "it goes on, but has no <NextKeyMarker>");
    }
    uploads.arena = list.arena;
    if (code)
        weir_s3_uploads_free(&uploads);
    else
        *out = uploads;
    return code;
}

void weir_s3_uploads_free(struct weir_s3_uploads *uploads)
{
    free(uploads->pending);
    weir_arena_free(uploads->arena);
    *uploads = (struct weir_s3_uploads){0};
}

static int undone_row(struct list *list, const char *name)
{
    struct weir_s3_undone *undone = list->out;
    struct weir_s3_undeleted one = {.key = list->cell[KEY]};
    if (strcmp(name, "Error"))
        return 0; /* nobody asked */
    if (!one.key || !list->cell[CODE] || !list->cell[CODE][0])
        return weir_fail(EBADMSG, "an error in it has no key or no code");
    copy_words(one.error.code, sizeof one.error.code, list->cell[CODE]);
    if (list->cell[MESSAGE])
        copy_words(one.error.message, sizeof one.error.message, list->cell[MESSAGE]);
    struct weir_s3_undeleted *more = more_room(undone->keys, undone->count, sizeof *more);
    if (!more)
        return undone->count >= WEIR_S3_PAGE_MAX ? -EBADMSG : -ENOMEM;
    undone->keys = more;
    undone->keys[undone->count++] = one;
    return 0;
}

int weir_s3_answer_delete(struct weir_s3_undone *out, const char *text, size_t size)
{
    struct weir_s3_undone undone = {0};
    struct list list = {.out = &undone, .row = undone_row};
    int code = read_list(&list, "DeleteResult", text, size);
    undone.arena = list.arena;
    if (code)
        weir_s3_undone_free(&undone);
    else
        *out = undone;
    return code;
}

void weir_s3_undone_free(struct weir_s3_undone *undone)
{
    free(undone->keys);
    weir_arena_free(undone->arena);
    *undone = (struct weir_s3_undone){0};
}

/* ---- pages ---- */

bool weir_s3_turns_repeat(struct weir_s3_turns *turns, const char *token)
{
    uint8_t sum[WEIR_SUM_BYTES];
    weir_sum(sum, token, strlen(token));
    if (turns->pages && !memcmp(sum, turns->mark, sizeof sum))
        return true;
    if (turns->pages++ >= turns->mark_at) { /* at each power of two: no round is too long for it */
        memcpy(turns->mark, sum, sizeof sum);
        turns->mark_at = 2 * turns->pages;
    }
    return false;
}
