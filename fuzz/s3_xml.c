/* Answers of S3: whatever the reader takes has balanced levels and texts that fit where they
 * should, and whatever is read out of it is whole. */
#include "target.h"
#include "tier/s3_answer.h"
#include "tier/s3_got.h"
#include "tier/s3_xml.h"

static void tokens(const char *text, size_t size)
{
    struct weir_s3_xml xml;
    char *out = malloc(size + 1);
    unsigned depth = 0;
    int code;
    weir_s3_xml_begin(&xml, text, size);
    while ((code = weir_s3_xml_next(&xml)) == 1) {
        PROMISE(xml.name[0] && strlen(xml.name) < WEIR_S3_XML_NAME_MAX);
        if (xml.token == WEIR_S3_XML_OPEN) {
            PROMISE(xml.depth == depth++ && depth <= WEIR_S3_XML_DEPTH_MAX);
        } else {
            PROMISE(depth && xml.depth == --depth);
            PROMISE(weir_s3_xml_text(&xml, out) <= xml.size && xml.size <= size);
        }
        PROMISE(weir_s3_xml_in(&xml, NULL) == !xml.depth);
    }
    PROMISE(code < 0 || depth == 0);
    PROMISE(weir_s3_xml_next(&xml) == code);
    free(out);
}

static void lists(const char *text, size_t size)
{
    struct weir_s3_page page;
    struct weir_s3_uploads uploads;
    if (!weir_s3_answer_list(&page, text, size)) {
        PROMISE(page.count <= WEIR_S3_PAGE_MAX && (!page.more || page.more[0]));
        for (size_t i = 0; i < page.count; i++)
            PROMISE(strlen(page.entries[i].key) <= size &&
                    strlen(page.entries[i].etag) < WEIR_S3_ETAG_MAX);
        weir_s3_page_free(&page);
    }
    if (!weir_s3_answer_uploads(&uploads, text, size)) {
        for (size_t i = 0; i < uploads.count; i++)
            PROMISE(uploads.pending[i].key[0] && uploads.pending[i].id[0]);
        PROMISE(!uploads.more_key || uploads.more_key[0]);
        weir_s3_uploads_free(&uploads);
    }
}

static void deletes(const char *text, size_t size)
{
    struct weir_s3_undone undone;
    if (weir_s3_answer_delete(&undone, text, size))
        return;
    PROMISE(undone.count <= WEIR_S3_PAGE_MAX);
    for (size_t i = 0; i < undone.count; i++) {
        const struct weir_s3_undeleted *one = &undone.keys[i];
        PROMISE(strlen(one->key) <= size && strlen(one->error.code) < sizeof one->error.code &&
                strlen(one->error.message) < sizeof one->error.message);
    }
    weir_s3_undone_free(&undone);
}

/* What is written reads back. */
static void escapes(const uint8_t *data, size_t size)
{
    char *plain = text_copy(data, size), *coded = malloc(5 * size + 8),
         *back = malloc(5 * size + 8);
    size_t length = weir_s3_xml_escape(NULL, plain);
    struct weir_s3_xml xml;
    PROMISE(length <= 5 * size);
    if (length) {
        strcpy(coded, "<a>");
        PROMISE(weir_s3_xml_escape(coded + 3, plain) == length);
        strcat(coded, "</a>");
        weir_s3_xml_begin(&xml, coded, strlen(coded));
        PROMISE(weir_s3_xml_next(&xml) == 1 && weir_s3_xml_next(&xml) == 1);
        PROMISE(weir_s3_xml_text(&xml, back) == strlen(plain) && !strcmp(back, plain));
        PROMISE(weir_s3_xml_next(&xml) == 0);
    }
    free(back);
    free(coded);
    free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = (char *)exact_copy(data, size), id[WEIR_S3_UPLOAD_ID_MAX];
    char etag[WEIR_S3_ETAG_MAX];
    struct weir_s3_error error = {0};
    struct weir_s3_got got;
    tokens(text, size);
    lists(text, size);
    deletes(text, size);
    escapes(data, size);
    if (!weir_s3_answer_error(&error, text, size))
        PROMISE(error.code[0] && strlen(error.message) < sizeof error.message);
    if (!weir_s3_answer_upload(id, text, size))
        PROMISE(id[0] && strlen(id) < sizeof id);
    if (!weir_s3_answer_complete(etag, &error, text, size))
        PROMISE(strlen(etag) < sizeof etag);
    if (!weir_s3_got_xml(&got, text, size))
        PROMISE(got.id[0] && got.secret[0]);
    free(text);
    return 0;
}
