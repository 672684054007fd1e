/* Signatures: AWS's published examples give the published ones; what must not be sent is refused.
 * (tests/remote/test_sign.py compares many more with a second implementation.) */
#include <errno.h>

#include "test.h"
#include "tier/s3_sign.h"

static const struct weir_s3_keys example = {"AKIAIOSFODNN7EXAMPLE",
                                            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", NULL};
static const struct weir_s3_keys suite = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                          NULL};

static const char *signature_of(const struct weir_s3_signed *done)
{
    const char *last = done->line[done->count - 1];
    CHECK(!strncmp(last, "Authorization: AWS4-HMAC-SHA256 Credential=", 43));
    const char *at = strstr(last, ", Signature=");
    CHECK(at);
    return at + 12;
}

static void signature_is(const struct weir_s3_call *call, const struct weir_s3_keys *keys,
                         const char *want)
{
    struct weir_s3_signed done;
    OK(weir_s3_sign(&done, call, keys));
    if (strcmp(signature_of(&done), want))
        fprintf(stderr, "%s\n", done.line[done.count - 1]);
    CHECK(!strcmp(signature_of(&done), want));
    weir_s3_signed_free(&done);
    CHECK(!done.text);
}

/* The examples of "Authenticating Requests: Using the Authorization Header" of the S3 reference. */
static void documented(void)
{
    struct weir_s3_call call = {.method = "GET",
                                .host = "examplebucket.s3.amazonaws.com",
                                .path = "/test.txt",
                                .payload = WEIR_S3_EMPTY,
                                .region = "us-east-1",
                                .service = "s3",
                                .time_s = 1369353600}; /* 20130524T000000Z */
    const struct weir_s3_pair range[] = {{"Range", "bytes=0-9"}};
    call.header = range;
    call.headers = 1;
    signature_is(&call, &example,
                 "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    const struct weir_s3_pair put[] = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                                       {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    call.method = "PUT";
    call.path = "/test$file.text";
    call.header = put;
    call.headers = 2;
    call.payload = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    signature_is(&call, &example,
                 "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    const struct weir_s3_pair lifecycle[] = {{"lifecycle", NULL}};
    call.method = "GET";
    call.path = "/";
    call.headers = 0;
    call.query = lifecycle;
    call.queries = 1;
    call.payload = WEIR_S3_EMPTY;
    signature_is(&call, &example,
                 "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    const struct weir_s3_pair list[] = {{"prefix", "J"}, {"max-keys", "2"}};
    call.query = list;
    call.queries = 2;
    signature_is(&call, &example,
                 "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* Of the test suite of Signature Version 4. */
static void suite_of_aws(void)
{
    struct weir_s3_call call = {.method = "GET",
                                .host = "example.amazonaws.com",
                                .path = "/",
                                .payload = WEIR_S3_EMPTY,
                                .region = "us-east-1",
                                .service = "service",
                                .time_s = 1440938160}; /* 20150830T123600Z */
    signature_is(&call, &suite, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    const struct weir_s3_pair order[] = {{"Param2", "value2"}, {"Param1", "value1"}};
    call.query = order;
    call.queries = 2;
    signature_is(&call, &suite, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
    call.queries = 0;
    const struct weir_s3_pair twice[] = {
        {"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}};
    call.header = twice;
    call.headers = 3;
    signature_is(&call, &suite, "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea");
    const struct weir_s3_pair blanks[] = {{"My-Header1", " value1"},
                                          {"My-Header2", "\"a   b   c\""}};
    call.header = blanks;
    call.headers = 2;
    signature_is(&call, &suite, "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

static void encoding(void)
{
    char out[64], text[64];
    CHECK_EQ(weir_s3_encode(out, "a/b c+d~e-f_g.h*(é)", true), 34);
    CHECK(!strcmp(out, "a/b%20c%2Bd~e-f_g.h%2A%28%C3%A9%29"));
    weir_s3_encode(out, "a/b", false);
    CHECK(!strcmp(out, "a%2Fb"));
    strcpy(text, "a%2fb%2Fc+d%20");
    CHECK(!weir_s3_decode(text) && !strcmp(text, "a/b/c+d "));
    static const char *const bad[] = {"%", "%4", "%zz", "%00", "a%"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        strcpy(text, bad[i]);
        CHECK_EQ(weir_s3_decode(text), -EINVAL);
    }
}

/* What is sent is in the answer; of a session the token is, too, and it is signed. */
static void lines(void)
{
    const struct weir_s3_keys session = {"ID", "SECRET", "TOKEN"};
    const struct weir_s3_pair query[] = {{"a-b", "1"}, {"a", "2"}, {"a", "1"}, {"\xc3\xa9", NULL}};
    struct weir_s3_call call = {.method = "GET",
                                .host = "127.0.0.1:7480",
                                .path = "/bucket/a b",
                                .query = query,
                                .queries = 4,
                                .payload = WEIR_S3_UNSIGNED,
                                .region = "r",
                                .service = "s3"};
    struct weir_s3_signed done;
    OK(weir_s3_sign(&done, &call, &session));
    CHECK(!strcmp(done.target, "/bucket/a%20b?%C3%A9=&a=1&a=2&a-b=1"));
    CHECK_EQ(done.count, 4);
    CHECK(!strcmp(done.line[0], "x-amz-date: 19700101T000000Z"));
    CHECK(!strcmp(done.line[1], "x-amz-content-sha256: UNSIGNED-PAYLOAD"));
    CHECK(!strcmp(done.line[2], "x-amz-security-token: TOKEN"));
    CHECK(strstr(done.line[3], "Credential=ID/19700101/r/s3/aws4_request, SignedHeaders=host;"
                               "x-amz-content-sha256;x-amz-date;x-amz-security-token, "));
    CHECK(!strstr(done.line[3], "SECRET"));
    weir_s3_signed_free(&done);
    OK(weir_s3_sign(&done, &call, NULL)); /* anonymous */
    CHECK(done.count == 0 && !strcmp(done.target, "/bucket/a%20b?%C3%A9=&a=1&a=2&a-b=1"));
    weir_s3_signed_free(&done);
}

static int sign_with(const struct weir_s3_keys *keys, const struct weir_s3_pair *header,
                     size_t headers, const char *region)
{
    struct weir_s3_call call = {.method = "GET",
                                .host = "h",
                                .path = "/",
                                .header = header,
                                .headers = headers,
                                .payload = WEIR_S3_EMPTY,
                                .region = region,
                                .service = "s3"};
    struct weir_s3_signed done = {0};
    int code = weir_s3_sign(&done, &call, keys);
    CHECK(!code || !done.text);
    CHECK(!code || !strstr(weir_fail_last(), "hidden"));
    weir_s3_signed_free(&done);
    return code;
}

static void refused(void)
{
    static char long_one[WEIR_S3_TOKEN_MAX + 1];
    struct weir_s3_pair many[WEIR_S3_HEADERS_MAX], bad = {"x", "hidden\r\nEvil: 1"};
    memset(long_one, 'x', sizeof long_one - 1);
    for (size_t i = 0; i < WEIR_S3_HEADERS_MAX; i++)
        many[i] = (struct weir_s3_pair){"x", "y"};
    OK(sign_with(&example, many, WEIR_S3_HEADERS_MAX - 3, "r"));
    CHECK_EQ(sign_with(&example, many, WEIR_S3_HEADERS_MAX - 2, "r"), -E2BIG);
    CHECK_EQ(sign_with(&example, &bad, 1, "r"), -EINVAL);
    bad = (struct weir_s3_pair){long_one, "hidden"};
    CHECK_EQ(sign_with(&example, &bad, 1, "r"), -E2BIG);
    CHECK_EQ(sign_with(&example, NULL, 0, "r\r\nEvil: 1"), -EINVAL);
    CHECK_EQ(sign_with(&example, NULL, 0, ""), -EINVAL);
    struct weir_s3_keys keys = {"a\nb", "hidden", NULL};
    CHECK_EQ(sign_with(&keys, NULL, 0, "r"), -EINVAL);
    keys = (struct weir_s3_keys){"", "hidden", NULL};
    CHECK_EQ(sign_with(&keys, NULL, 0, "r"), -EINVAL);
    keys = (struct weir_s3_keys){"a", "", NULL};
    CHECK_EQ(sign_with(&keys, NULL, 0, "r"), -EINVAL);
    keys = (struct weir_s3_keys){"a", "b", "hidden\r\nEvil: 1"};
    CHECK_EQ(sign_with(&keys, NULL, 0, "r"), -EINVAL);
    keys = (struct weir_s3_keys){"a", "b", long_one};
    CHECK_EQ(sign_with(&keys, NULL, 0, "r"), -EINVAL);
    keys.token = long_one + 1; /* the longest */
    OK(sign_with(&keys, NULL, 0, "r"));
    keys = (struct weir_s3_keys){"a", long_one, NULL};
    CHECK_EQ(sign_with(&keys, NULL, 0, "r"), -EINVAL);
}

int main(void)
{
    RUN(documented);
    RUN(suite_of_aws);
    RUN(encoding);
    RUN(lines);
    RUN(refused);
    return TEST_RESULT;
}
