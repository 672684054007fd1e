/* signer.c - signs what it is told, for tests/remote/test_sign.py to compare. A line is METHOD HOST
 * PATH REGION SERVICE TIME PAYLOAD ID SECRET TOKEN, then any number of "q" NAME VALUE and "h" NAME
 * VALUE, separated by tabs. TOKEN "" is none. Answers with the target and the last header line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "tier/s3_sign.h"

enum { FIXED = 10, WORDS_MAX = FIXED + 3 * 32 };

static void sign(char **word, size_t count)
{
    struct weir_s3_pair query[WEIR_S3_QUERIES_MAX], header[WEIR_S3_HEADERS_MAX];
    struct weir_s3_signed done;
    CHECK(count >= FIXED && (count - FIXED) % 3 == 0);
    struct weir_s3_call call = {.method = word[0],
                                .host = word[1],
                                .path = word[2],
                                .region = word[3],
                                .service = word[4],
                                .time_s = atoll(word[5]),
                                .payload = word[6]};
    struct weir_s3_keys keys = {word[7], word[8], word[9][0] ? word[9] : NULL};
    for (size_t i = FIXED; i < count; i += 3) {
        struct weir_s3_pair pair = {word[i + 1], word[i + 2]};
        if (word[i][0] == 'q')
            query[call.queries++] = pair;
        else
            header[call.headers++] = pair;
    }
    call.query = query;
    call.header = header;
    OK(weir_s3_sign(&done, &call, &keys));
    printf("%s\n%s\n", done.target, done.line[done.count - 1]);
    weir_s3_signed_free(&done);
}

int main(void)
{
    char line[65536];
    while (fgets(line, sizeof line, stdin)) {
        char *words[WORDS_MAX], *rest = line;
        size_t count = 0;
        line[strcspn(line, "\n")] = 0;
        while (rest && count < WORDS_MAX)
            words[count++] = strsep(&rest, "\t");
        sign(words, count);
    }
    return 0;
}
