/* XML is read token by token, and S3's answers out of it; what is wrong is refused, and an answer
 * that is another one, or not whole, is wrong. */
#include <errno.h>

#include "test.h"
#include "tier/s3_answer.h"
#include "tier/s3_xml.h"

/* "<a" for an opening, "text>" for a closing one. */
static const char *tokens(const char *text, size_t size, int *code)
{
    static char out[1024];
    struct weir_s3_xml xml;
    size_t used = 0;
    weir_s3_xml_begin(&xml, text, size);
    while ((*code = weir_s3_xml_next(&xml)) == 1) {
        char value[256] = "";
        if (xml.token == WEIR_S3_XML_CLOSE && xml.text)
            weir_s3_xml_text(&xml, value);
        used +=
            (size_t)(xml.token == WEIR_S3_XML_OPEN
                         ? snprintf(out + used, sizeof out - used, "<%s%u ", xml.name, xml.depth)
                         : snprintf(out + used, sizeof out - used, "%s>%s ", value, xml.name));
        CHECK(used < sizeof out - 300);
    }
    out[used] = 0;
    return out;
}

static void right(void)
{
    static const struct {
        const char *text, *tokens;
    } cases[] = {
        {"<a/>", "<a0 >a "},
        {"<a></a>", "<a0 >a "},
        {"<?xml version='1.0'?>\n<!-- x --><a>t</a>\n<!-- y -->\n", "<a0 t>a "},
        {"\xef\xbb\xbf<a>\xc3\xa9</a>", "<a0 \xc3\xa9>a "},
        {"<a><b>1</b><c/></a>", "<a0 <b1 1>b <c1 >c >a "},
        {"<a>x<b>1</b>y</a>", "<a0 <b1 1>b >a "},
        {"<s3:a xmlns:s3='u>v' x=\"</a>\"><s3:b>1</s3:b></s3:a >", "<a0 <b1 1>b >a "},
        {"<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x20ac;&#x1F600;</a>",
         "<a0 <>&\"'A\xe2\x82\xac\xf0\x9f\x98\x80>a "},
        {"<a><![CDATA[<b>&amp;]]>]]&gt;<!-- <x> --><?p <y> ?>z</a>", "<a0 <b>&amp;]]>z>a "},
        {"<a><b><c>1</c></b><b><c>2</c></b></a>", "<a0 <b1 <c2 1>c >b <b1 <c2 2>c >b >a "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code;
        const char *got = tokens(cases[i].text, strlen(cases[i].text), &code);
        if (code || strcmp(got, cases[i].tokens))
            fprintf(stderr, "%s: %s\n", cases[i].text, got);
        CHECK(!code && !strcmp(got, cases[i].tokens));
        /* Cut anywhere before the root's end, it is wrong. */
        size_t end = (size_t)(strrchr(cases[i].text, '>') - cases[i].text);
        if (strstr(cases[i].text, "y -->"))
            continue;
        for (size_t cut = 0; cut <= end; cut++) {
            tokens(cases[i].text, cut, &code);
            CHECK_EQ(code, -EBADMSG);
        }
    }
}

static void wrong(void)
{
    static const char *const cases[] = {
        "",
        "x",
        "<a>",
        "</a>",
        "<a></b>",
        "<a/><b/>",
        "<a/>x",
        "x<a/>",
        "<a>&nbsp;</a>",
        "<a>&</a>",
        "<a>&#0;</a>",
        "<a>&#xd800;</a>",
        "<a>&#x110000;</a>",
        "<a>&#99999999999;</a>",
        "<a>&#;</a>",
        "<a>&#x;</a>",
        "<a>&#xg;</a>",
        "<a>\xff</a>",
        "<!DOCTYPE a []><a/>",
        "<a><!ENTITY b 'c'></a>",
        "<a <b></a>",
        "<a b='</a>",
        "<a/ >",
        "< a/>",
        "<a><![CDATA[</a>",
        "<a><!-- </a>",
        "<a></ a>",
        "<a></a b>",
        "<![CDATA[x]]><a/>",
        "<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol1 \"&lol;&lol;\">]><lolz>&lol1;</lolz>",
        "<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/>",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code;
        tokens(cases[i], strlen(cases[i]), &code);
        if (code != -EBADMSG)
            fprintf(stderr, "'%s' was taken\n", cases[i]);
        CHECK_EQ(code, -EBADMSG);
    }
    int code;
    tokens("<a>\0</a>", 8, &code);
    CHECK_EQ(code, -EBADMSG);
    char deep[WEIR_S3_XML_DEPTH_MAX * 3 + 4] = "";
    for (int i = 0; i <= WEIR_S3_XML_DEPTH_MAX; i++)
        strcat(deep, "<a>");
    tokens(deep, strlen(deep), &code);
    CHECK(code == -EBADMSG && strstr(weir_fail_last(), "deep"));
}

#define PAGE(rest)                                                                                 \
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" rest                    \
    "</ListBucketResult>"
#define ENTRY(key, size, rest)                                                                     \
    "<Contents><Key>" key "</Key><LastModified>1994-11-06T08:49:37.000Z</LastModified><Size>" size \
    "</Size>" rest "</Contents>"

static int list(struct weir_s3_page *page, const char *text)
{
    return weir_s3_answer_list(page, text, strlen(text));
}

static void lists(void)
{
    struct weir_s3_page page;
    OK(list(&page, PAGE("<Name>b</Name><IsTruncated>false</IsTruncated>")));
    CHECK(page.count == 0 && !page.more);
    weir_s3_page_free(&page);
    OK(list(&page, PAGE("<Prefix>ignored/</Prefix><EncodingType>url</EncodingType>" ENTRY(
                       "a%20b%2Bc+d/%C3%A9", "123",
                       "<ETag>&quot;abc&quot;</ETag><Owner><ID>x</ID><Key>no</Key></Owner>")
                            ENTRY("&amp;", "0",
                                  "") "<CommonPrefixes><Prefix>p%2F</Prefix></CommonPrefixes>"
                                      "<IsTruncated>true</IsTruncated>"
                                      "<NextContinuationToken>a+b==</NextContinuationToken>")));
    CHECK_EQ(page.count, 3);
    CHECK(!strcmp(page.entries[0].key, "a b+c d/\xc3\xa9") && !page.entries[0].is_prefix);
    CHECK(page.entries[0].size == 123 && page.entries[0].time_ns == 784111777000000000);
    CHECK(!strcmp(page.entries[0].etag, "abc") && !strcmp(page.entries[1].etag, ""));
    CHECK(!strcmp(page.entries[1].key, "&"));
    CHECK(!strcmp(page.entries[2].key, "p/") && page.entries[2].is_prefix);
    CHECK(!strcmp(page.more, "a+b=="));
    weir_s3_page_free(&page);
    /* Not encoded: as it stands. */
    OK(list(&page, PAGE(ENTRY("a+b%20", "1", ""))));
    CHECK(!strcmp(page.entries[0].key, "a+b%20"));
    weir_s3_page_free(&page);
}

static void wrong_lists(void)
{
    static const char *const cases[] = {
        "",
        "<html><body>502</body></html>",
        "<Error><Code>NoSuchKey</Code></Error>",
        PAGE("<IsTruncated>true</IsTruncated>"),
        PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken/>"),
        PAGE(ENTRY("", "1", "")),
        PAGE(ENTRY("k", "", "")),
        PAGE(ENTRY("k", "-1", "")),
        PAGE(ENTRY("k", "18446744073709551616", "")),
        PAGE(ENTRY("k", "1", "<Key>l</Key>")),
        PAGE(ENTRY("k", "1", "<ETag>a b</ETag>")),
        PAGE("<Contents/>"),
        PAGE("<CommonPrefixes/>"),
        PAGE("<Contents><Key>k</Key><Size>1</Size></Contents>"),
        PAGE("<Contents><Key>k</Key><Size>1</Size><LastModified>now</LastModified></Contents>"),
        PAGE("<EncodingType>url</EncodingType>" ENTRY("%zz", "1", "")),
        PAGE("<EncodingType>url</EncodingType>" ENTRY("%00", "1", "")),
        "<ListBucketResult><IsTruncated>false</IsTruncated>",
    };
    struct weir_s3_page page = {.count = 4711};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = list(&page, cases[i]);
        if (code != -EBADMSG)
            fprintf(stderr, "'%s' was taken\n", cases[i]);
        CHECK(code == -EBADMSG && page.count == 4711);
    }
}

/* As many entries as there may be, and one more. */
static void large_lists(void)
{
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM);
    struct weir_s3_page page;
    for (int more = 0; more < 2; more++) {
        size_t used = (size_t)snprintf(text, ROOM, "<ListBucketResult>");
        for (int i = 0; i < WEIR_S3_PAGE_MAX + more; i++)
            used += (size_t)snprintf(text + used, ROOM - used, ENTRY("key-%d", "%d", ""), i, i);
        snprintf(text + used, ROOM - used, "</ListBucketResult>");
        CHECK_EQ(list(&page, text), more ? -EBADMSG : 0);
        if (more)
            break;
        CHECK_EQ(page.count, WEIR_S3_PAGE_MAX);
        for (size_t i = 0; i < page.count; i++) {
            char key[32];
            snprintf(key, sizeof key, "key-%zu", i);
            CHECK(page.entries[i].size == i && !strcmp(page.entries[i].key, key));
        }
        weir_s3_page_free(&page);
    }
    free(text);
    static char huge[WEIR_S3_ANSWER_BYTES_MAX + 1];
    CHECK_EQ(weir_s3_answer_list(&page, huge, sizeof huge), -EBADMSG);
}

static void errors(void)
{
    static const char text[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>SignatureDoesNotMatch</Code>"
        "<Message>line\none &lt;two&gt;</Message><Region>eu-west-1</Region>"
        "<StringToSign>AWS4-HMAC-SHA256 …</StringToSign><Token-0>SECRET</Token-0></Error>";
    struct weir_s3_error error;
    OK(weir_s3_answer_error(&error, text, strlen(text)));
    CHECK(!strcmp(error.code, "SignatureDoesNotMatch") && !strcmp(error.region, "eu-west-1"));
    CHECK(!strcmp(error.message, "line one <two>"));
    /* What may be a signature or a token is not shown. */
    static const char echo[] =
        "<Error><Code>X</Code><Message>got "
        "Signature=0123456789abcdef0123456789abcdef0123456789abcdef"
        "0123456789abcdef, and FwoGZXIvYXdzEBYaDKey+/==FwoGZXIvYXdzEBYaDKey+/==; by user "
        "arn:aws:iam::123456789012:user/me</Message></Error>";
    OK(weir_s3_answer_error(&error, echo, strlen(echo)));
    CHECK(!strcmp(error.message, "got ..., and ...; by user arn:aws:iam::123456789012:user/me"));
    /* Too long is cut, at a whole character. */
    char long_one[2048] = "<Error><Code>X</Code><Message>";
    for (int i = 0; i < 300; i++)
        strcat(long_one, "\xc3\xa9");
    strcat(long_one, "</Message></Error>");
    OK(weir_s3_answer_error(&error, long_one, strlen(long_one)));
    CHECK_EQ(strlen(error.message), 254);
    CHECK_EQ(weir_s3_answer_error(&error, "<Error/>", 8), -EBADMSG);
    CHECK_EQ(weir_s3_answer_error(&error, "<a/>", 4), -EBADMSG);
    CHECK_EQ(weir_s3_answer_error(&error, "", 0), -EBADMSG);
}

static int upload(char *out, const char *text)
{
    return weir_s3_answer_upload(out, text, strlen(text));
}

static int complete(char *etag, struct weir_s3_error *error, const char *text)
{
    return weir_s3_answer_complete(etag, error, text, strlen(text));
}

#define COMPLETE(rest) "<CompleteMultipartUploadResult>" rest "</CompleteMultipartUploadResult>"
#define INITIATE(rest) "<InitiateMultipartUploadResult>" rest "</InitiateMultipartUploadResult>"

static void multiparts(void)
{
    char id[WEIR_S3_UPLOAD_ID_MAX], etag[WEIR_S3_ETAG_MAX];
    struct weir_s3_error error;
    OK(upload(id, INITIATE("<Bucket>b</Bucket><Key>k</Key><UploadId>2~x&amp;y</UploadId>")));
    CHECK(!strcmp(id, "2~x&y"));
    CHECK_EQ(upload(id, INITIATE("<Bucket>b</Bucket>")), -EBADMSG);
    CHECK_EQ(upload(id, INITIATE("<UploadId>a\nb</UploadId>")), -EBADMSG);
    CHECK_EQ(upload(id, INITIATE("<x><UploadId>a</UploadId></x>")), -EBADMSG);
    CHECK_EQ(upload(id, "<Error><Code>X</Code></Error>"), -EBADMSG);
    OK(complete(etag, &error, COMPLETE("<ETag>&quot;abc-3&quot;</ETag>")));
    CHECK(!strcmp(etag, "abc-3"));
    OK(complete(etag, &error, COMPLETE("<ETag></ETag>")));
    CHECK(!etag[0]);
    OK(complete(etag, &error, COMPLETE("")));
    CHECK_EQ(complete(etag, &error, COMPLETE("<ETag>a b</ETag>")), -EBADMSG);
    CHECK_EQ(complete(etag, &error, "  \n"), -EBADMSG); /* keeps the connection alive, then ends */
    CHECK_EQ(
        complete(etag, &error, "<Error><Code>InternalError</Code><Message>m</Message></Error>"),
        -EREMOTEIO);
    CHECK(!strcmp(error.code, "InternalError") && strstr(weir_fail_last(), "InternalError: m"));
}

#define UPLOADS(rest) "<ListMultipartUploadsResult>" rest "</ListMultipartUploadsResult>"
#define UPLOAD(key, id)                                                                            \
    "<Upload><Key>" key "</Key><UploadId>" id "</UploadId><Initiated>1994-11-06T08:49:37.000Z"     \
    "</Initiated></Upload>"

static void pending_uploads(void)
{
    static const char one[] =
        UPLOADS("<EncodingType>url</EncodingType>" UPLOAD("a%20b", "1")
                    UPLOAD("c", "2") "<IsTruncated>true</IsTruncated>"
                                     "<NextKeyMarker>c%20</NextKeyMarker>"
                                     "<NextUploadIdMarker>2</NextUploadIdMarker>");
    static const char *const bad[] = {
        UPLOADS("<IsTruncated>true</IsTruncated>"),
        UPLOADS(UPLOAD("", "1")),
        UPLOADS(UPLOAD("k", "")),
        UPLOADS("<Upload/>"),
        PAGE(""),
    };
    struct weir_s3_uploads uploads;
    OK(weir_s3_answer_uploads(&uploads, one, strlen(one)));
    CHECK(uploads.count == 2 && !strcmp(uploads.pending[0].key, "a b"));
    CHECK(!strcmp(uploads.pending[1].id, "2") && uploads.pending[1].time_ns == 784111777000000000);
    CHECK(!strcmp(uploads.more_key, "c ") && !strcmp(uploads.more_id, "2"));
    weir_s3_uploads_free(&uploads);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(weir_s3_answer_uploads(&uploads, bad[i], strlen(bad[i])), -EBADMSG);
}

#define DELETED(rest)      "<DeleteResult xmlns='u'>" rest "</DeleteResult>"
#define FAILED(key, words) "<Error><Key>" key "</Key>" words "</Error>"

static int undone_of(struct weir_s3_undone *out, const char *text)
{
    return weir_s3_answer_delete(out, text, strlen(text));
}

static void deletes(void)
{
    static const char two[] = DELETED("<Deleted><Key>a</Key></Deleted>" FAILED(
        "b&amp;&lt; \xc3\xa9", "<VersionId/><Code>AccessDenied</Code><Message>no\nway</Message>")
                                          FAILED("c", "<Code>InternalError</Code>"));
    static const char *const bad[] = {
        "",
        "<Error><Code>InternalError</Code></Error>",
        "<ListBucketResult/>",
        DELETED(FAILED("a", "")),
        DELETED(FAILED("a", "<Code/>")),
        DELETED("<Error><Code>X</Code></Error>"),
        DELETED(FAILED("a", "<Key>b</Key><Code>X</Code>")),
    };
    struct weir_s3_undone undone = {.count = 7};
    OK(undone_of(&undone, "<?xml version=\"1.0\"?><DeleteResult/>"));
    CHECK_EQ(undone.count, 0);
    weir_s3_undone_free(&undone);
    OK(undone_of(&undone, two));
    CHECK_EQ(undone.count, 2);
    CHECK(!strcmp(undone.keys[0].key, "b&< \xc3\xa9"));
    CHECK(!strcmp(undone.keys[0].error.code, "AccessDenied"));
    CHECK(!strcmp(undone.keys[0].error.message, "no way"));
    CHECK(!strcmp(undone.keys[1].key, "c") && !undone.keys[1].error.message[0]);
    CHECK(!strcmp(undone.keys[1].error.code, "InternalError"));
    weir_s3_undone_free(&undone);
    for (size_t cut = 0; cut < strlen(two); cut++)
        CHECK_EQ(weir_s3_answer_delete(&undone, two, cut), -EBADMSG);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(undone_of(&undone, bad[i]), -EBADMSG);
    char *many = malloc(100000), *at = stpcpy(many, "<DeleteResult>");
    for (int i = 0; i <= WEIR_S3_PAGE_MAX; i++)
        at = stpcpy(at, FAILED("k", "<Code>X</Code>"));
    stpcpy(at, "</DeleteResult>");
    CHECK_EQ(undone_of(&undone, many), -EBADMSG); /* more than were asked for */
    free(many);
}

static void escapes(void)
{
    static const struct {
        const char *text, *escaped; /* NULL: there is no way to say it */
    } cases[] = {
        {"plain", "plain"},      {"a&b<c>d\"e'f]]>", "a&amp;b&lt;c&gt;d\"e'f]]&gt;"},
        {"&amp;", "&amp;amp;"},  {"\xc3\xa9 \xf0\x9f\x98\x80", "\xc3\xa9 \xf0\x9f\x98\x80"},
        {"a\nb", NULL},          {"a\x01", NULL},
        {"\xff", NULL},          {"a\xef\xbf\xbf", NULL},
        {"a\xef\xbf\xbe", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[64];
        size_t size = weir_s3_xml_escape(NULL, cases[i].text);
        CHECK_EQ(size, cases[i].escaped ? strlen(cases[i].escaped) : 0);
        CHECK_EQ(weir_s3_xml_escape(out, cases[i].text), size);
        CHECK(!size || !strcmp(out, cases[i].escaped));
    }
}

int main(void)
{
    RUN(right);
    RUN(wrong);
    RUN(lists);
    RUN(wrong_lists);
    RUN(large_lists);
    RUN(errors);
    RUN(multiparts);
    RUN(pending_uploads);
    RUN(deletes);
    RUN(escapes);
    return TEST_RESULT;
}
