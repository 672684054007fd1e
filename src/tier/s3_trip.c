/* s3_trip.c - see s3_trip.h. libcurl's callbacks run on the thread of the net that has the trip. */
#include "tier/s3_trip.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tier/s3_fetch.h"
#include "util/copy.h"
#include "util/hash.h"
#include "util/sys.h"

void weir_s3_trip_begin(struct weir_s3_trip *trip, const char *method, const char *name)
{
    memset(trip, 0, sizeof *trip);
    trip->method = method;
    trip->name = name;
}

static void add(struct weir_s3_pair *pairs, size_t *count, const char *name, const char *value)
{
    assert(*count < WEIR_S3_TRIP_PAIRS);
    pairs[(*count)++] = (struct weir_s3_pair){name, value};
}

void weir_s3_trip_query(struct weir_s3_trip *trip, const char *name, const char *value)
{
    add(trip->query, &trip->queries, name, value);
}

void weir_s3_trip_header(struct weir_s3_trip *trip, const char *name, const char *value)
{
    add(trip->header, &trip->headers, name, value);
}

void weir_s3_trip_body(struct weir_s3_trip *trip, const void *body, size_t bytes, bool hash)
{
    uint8_t sum[WEIR_SHA256_BYTES];
    trip->body = body;
    trip->body_bytes = bytes;
    if (!hash) {
        strcpy(trip->payload, WEIR_S3_UNSIGNED);
        return;
    }
    weir_sha256(sum, body, bytes);
    weir_hex(trip->payload, sum, sizeof sum);
}

void weir_s3_crc(char out[WEIR_S3_CRC_MAX], uint32_t crc)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t bits = (uint64_t)crc << 4; /* six digits of six bits */
    for (int i = 0; i < 6; i++)
        out[i] = digits[bits >> (30 - 6 * i) & 63];
    memcpy(out + 6, "==", 3);
}

void weir_s3_trip_end(struct weir_s3_trip *trip)
{
    free(trip->text);
    trip->text = NULL;
    trip->text_bytes = 0;
}

/* ---- the answer ---- */

/* Forgets what the try before brought. */
static void forget_answer(struct weir_s3_trip *trip)
{
    weir_s3_trip_end(trip);
    trip->code = 0;
    trip->status = 0;
    trip->broken = trip->slow = trip->has_length = trip->has_crc = false;
    trip->has_range = trip->in_range = false;
    trip->sent = 0;
    trip->fail[0] = trip->etag[0] = trip->region[0] = trip->curl_text[0] = 0;
    memset(&trip->meta, 0, sizeof trip->meta);
    memset(&trip->error, 0, sizeof trip->error);
    trip->length = 0;
    trip->modified_s = trip->date_s = 0;
}

/* The answer cannot be used. Returns what stops libcurl. */
static size_t broken(struct weir_s3_trip *trip, int code, const char *why)
{
    trip->broken = true;
    trip->code = -code;
    snprintf(trip->fail, sizeof trip->fail, "%s", why);
    return 0;
}

static bool is_header(const char *line, size_t size, const char *name, const char **value,
                      size_t *value_size)
{
    size_t n = strlen(name);
    if (size <= n || strncasecmp(line, name, n) || line[n] != ':')
        return false;
    const char *at = line + n + 1, *end = line + size;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && strchr("\r\n \t", end[-1]))
        end--;
    *value = at;
    *value_size = (size_t)(end - at);
    return true;
}

static void copy_text(char *out, size_t room, const char *text, size_t size)
{
    size_t n = size < room ? size : 0; /* what does not fit is not ours */
    memcpy(out, text, n);
    out[n] = 0;
}

/* "bytes 0-99/12345": just the range that was asked for, of a blob of the size that was opened. */
static bool is_our_range(const struct weir_s3_trip *trip, const char *text, size_t size)
{
    const char *unit = "bytes ", *dash, *slash;
    uint64_t begin, end, total;
    size_t n = strlen(unit);
    if (size <= n || strncasecmp(text, unit, n))
        return false;
    dash = memchr(text, '-', size);
    slash = memchr(text, '/', size);
    return dash && slash && dash < slash &&
           weir_s3_number(&begin, text + n, (size_t)(dash - text) - n) &&
           weir_s3_number(&end, dash + 1, (size_t)(slash - dash) - 1) &&
           weir_s3_number(&total, slash + 1, (size_t)(text + size - slash) - 1) &&
           begin == trip->range_begin && end == trip->range_end - 1 && total == trip->blob_bytes;
}

static size_t on_header(char *line, size_t one, size_t size, void *arg)
{
    struct weir_s3_trip *trip = arg;
    const char *value;
    size_t n;
    (void)one;
    if (size > 5 && !memcmp(line, "HTTP/", 5)) { /* after a 100, the real one */
        trip->has_length = false;
        return size;
    }
    if (is_header(line, size, "ETag", &value, &n))
        weir_s3_etag(trip->etag, value, n);
    else if (is_header(line, size, "Last-Modified", &value, &n))
        weir_s3_time_http(&trip->modified_s, value, n);
    else if (is_header(line, size, "Date", &value, &n))
        weir_s3_time_http(&trip->date_s, value, n);
    else if (is_header(line, size, "Content-Length", &value, &n))
        trip->has_length = weir_s3_number(&trip->length, value, n);
    else if (is_header(line, size, WEIR_S3_META, &value, &n))
        weir_s3_meta_read(&trip->meta, value, n);
    else if (is_header(line, size, "x-amz-bucket-region", &value, &n))
        copy_text(trip->region, sizeof trip->region, value, n);
    else if (is_header(line, size, "x-amz-checksum-crc32c", &value, &n))
        trip->has_crc = true;
    else if (trip->reads && is_header(line, size, "Content-Range", &value, &n))
        trip->has_range = is_our_range(trip, value, n);
    return size;
}

static int on_send(void *arg, char *theirs, char *ours, int their_port, int our_port)
{
    struct weir_s3_trip *trip = arg;
    (void)theirs, (void)ours, (void)their_port, (void)our_port;
    trip->sent++;
    return CURL_PREREQFUNC_OK;
}

/* Bytes of a range, into the memory of whoever asked for them. */
static size_t take_range(struct weir_s3_trip *trip, const char *data, size_t size)
{
    for (size_t left = size; left;) {
        struct weir_req *req = trip->reads;
        if (!req)
            return broken(trip, EIO, "the server sent more than was asked for");
        size_t want = req->io.done - (size_t)req->result, n = left < want ? left : want;
        weir_copy_around((char *)req->buf + req->result, data, n);
        req->result += n;
        trip->range_begin += n;
        trip->moved_bytes += n;
        data += n;
        left -= n;
        if (req->result == req->io.done) {
            trip->reads = req->next;
            req->code = 0;
            weir_req_done(req);
        }
    }
    return size;
}

static size_t keep_text(struct weir_s3_trip *trip, const char *data, size_t size, size_t max)
{
    if (size > max - trip->text_bytes)
        return broken(trip, EFBIG, "the answer is longer than it may be");
    if (!trip->text) {
        size_t room = trip->has_length && trip->length <= max ? (size_t)trip->length : max;
        trip->text = weir_realloc(NULL, room + 1);
        if (!trip->text)
            return broken(trip, ENOMEM, "out of memory");
        trip->text_room = room;
    }
    /* A chunked answer may have a Content-Length all the same, which then says nothing. */
    if (size > trip->text_room - trip->text_bytes)
        return broken(trip, EIO, "the answer is longer than it said");
    memcpy(trip->text + trip->text_bytes, data, size);
    trip->text_bytes += size;
    trip->text[trip->text_bytes] = 0;
    trip->moved_bytes += size;
    return size;
}

static size_t on_body(char *data, size_t one, size_t size, void *arg)
{
    struct weir_s3_trip *trip = arg;
    (void)one;
    if (!trip->status)
        curl_easy_getinfo(trip->easy, CURLINFO_RESPONSE_CODE, &trip->status);
    bool is_good = trip->status >= 200 && trip->status < 300;
    if (is_good && trip->range_end) {
        bool whole = trip->status == 200 && trip->has_length &&
                     (trip->in_range || !trip->range_begin) && trip->length == trip->range_end;
        if (trip->status != 206 && !whole)
            return broken(trip, ENOTSUP, "the server does not answer requests for a range");
        if (!whole && !trip->has_range && !trip->in_range)
            return broken(trip, EIO, "the server answered with another range than was asked for");
        trip->in_range = true; /* from here on range_begin moves */
        return take_range(trip, data, size);
    }
    if (is_good)
        return trip->text_max ? keep_text(trip, data, size, trip->text_max)
                              : size;                         /* nothing in it that we need */
    size_t room = WEIR_S3_ERROR_BYTES_MAX - trip->text_bytes; /* a page of HTML may be longer */
    keep_text(trip, data, size < room ? size : room, WEIR_S3_ERROR_BYTES_MAX);
    return size;
}

/* ---- arming ---- */

static int add_line(struct weir_s3_trip *trip, const char *text)
{
    struct curl_slist *more = curl_slist_append(trip->lines, text);
    if (!more)
        return weir_fail_memory();
    trip->lines = more;
    return 0;
}

static int sign(struct weir_s3_trip *trip, const struct weir_s3_site *site,
                const struct weir_s3_address *address, int64_t now_s)
{
    char path[WEIR_S3_PATH_MAX], line[WEIR_S3_PATH_MAX], range[64];
    struct weir_s3_pair headers[WEIR_S3_TRIP_PAIRS + 1];
    size_t count = trip->headers;
    int code = weir_s3_site_path(site, trip->name, path);
    memcpy(headers, trip->header, count * sizeof *headers);
    if (trip->range_end) {
        snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)trip->range_begin,
                 (unsigned long long)trip->range_end - 1);
        headers[count++] = (struct weir_s3_pair){"range", range};
    }
    strcpy(trip->signed_region, address->region);
    trip->signed_s = now_s;
    struct weir_s3_call call = {
        .method = trip->method,
        .host = address->host,
        .path = path,
        .queries = trip->queries,
        .headers = count,
        .query = trip->query,
        .header = headers,
        .payload = trip->payload[0] ? trip->payload : WEIR_S3_EMPTY,
        .region = address->region,
        .service = "s3",
        .time_s = now_s,
    };
    if (!code)
        code = weir_s3_sign(&trip->sign, &call, trip->keys);
    for (size_t i = 0; !code && i < count; i++) {
        snprintf(line, sizeof line, "%s: %s", headers[i].name, headers[i].value);
        code = add_line(trip, line);
    }
    for (size_t i = 0; !code && i < trip->sign.count; i++)
        code = add_line(trip, trip->sign.line[i]);
    snprintf(line, sizeof line, "Host: %s", address->host);
    if (!code)
        code = add_line(trip, line);
    if (!code) /* libcurl shall not add what costs a round trip, or says what is not so */
        code = add_line(trip, "Expect:");
    return code ? code : add_line(trip, "Content-Type:");
}

static void set_method(struct weir_s3_trip *trip)
{
    CURL *easy = trip->easy;
    if (!strcmp(trip->method, "HEAD")) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (!strcmp(trip->method, "PUT") || !strcmp(trip->method, "POST")) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)trip->body_bytes);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, trip->body_bytes ? trip->body : "");
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, trip->method);
    } else if (strcmp(trip->method, "GET")) {
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, trip->method);
    }
}

int weir_s3_trip_arm(struct weir_s3_trip *trip, struct weir_s3_site *site, int64_t now_s,
                     const char *ca_file)
{
    enum { BUFFER_BYTES = 256 << 10 }; /* fewer calls; more gains nothing */
    struct weir_s3_address address;
    CURL *easy = trip->easy;
    forget_answer(trip);
    weir_s3_site_address(site, &address);
    int code = sign(trip, site, &address, now_s);
    if (code)
        return code;
    size_t size = strlen(address.base) + strlen(trip->sign.target) + 1;
    char *url = weir_alloc(size);
    if (!url)
        return weir_fail_memory();
    snprintf(url, size, "%s%s", address.base, trip->sign.target);
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    free(url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, site->is_https ? "https" : "http");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, trip->lines);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, trip->curl_text);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, trip);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, trip);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, trip);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, trip);
    if (ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
    set_method(trip);
    return 0;
}

void weir_s3_trip_disarm(struct weir_s3_trip *trip, CURLcode result)
{
    weir_s3_signed_free(&trip->sign);
    weir_s3_lines_free(trip->lines);
    trip->lines = NULL;
    trip->doubtful |= trip->sent > 1;
    if (result == CURLE_OK)
        curl_easy_getinfo(trip->easy, CURLINFO_RESPONSE_CODE, &trip->status);
    if (trip->body)
        trip->moved_bytes += trip->body_bytes;
    if (result == CURLE_OK && trip->status >= 300 && trip->text_bytes)
        weir_s3_answer_error(&trip->error, trip->text, trip->text_bytes);
    if (result == CURLE_OK && !trip->broken && trip->range_end && weir_s3_trip_ok(trip) &&
        trip->reads)
        broken(trip, EIO, "the server sent less than was asked for");
}
