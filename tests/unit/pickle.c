/* Pickles become states: what they hold is written as tagged JSON, what they would run is not run,
 * and whatever is wrong with them is said.
 */
#include <errno.h>

#include "ckpt/names.h"
#include "ckpt/pickle.h"
#include "ckpt/tagged.h"
#include "test.h"

static struct weir_arena *arena;
static struct weir_tagged tagged;

/* Loads it from a block of just its size, and writes it. */
static int load(const void *bytes, size_t size, bool skip)
{
    struct weir_value *root;
    uint8_t *copy = malloc(size + !size);
    CHECK(copy);
    memcpy(copy, bytes, size);
    weir_arena_free(arena);
    arena = NULL;
    weir_tagged_free(&tagged);
    int code = weir_pickle_load(&root, &arena, copy, size, NULL, NULL);
    if (!code)
        code = weir_tagged_make(&tagged, &arena, root, skip);
    free(copy);
    return code;
}

static void says(const char *bytes, size_t size, const char *json)
{
    char expected[4096];
    snprintf(expected, sizeof expected, "{\"weir\":\"state/1\",\"root\":%s}", json);
    OK(load(bytes, size, true));
    if (strcmp(tagged.text, expected))
        fprintf(stderr, "%s\n%s\n", tagged.text, expected);
    CHECK(!strcmp(tagged.text, expected));
    CHECK_EQ(tagged.size, strlen(expected));
}
#define SAYS(bytes, json) says("\x80\2" bytes ".", sizeof(bytes) + 2, json)

static void numbers(void)
{
    SAYS("N", "null");
    SAYS("\x88", "true");
    SAYS("\x89", "false");
    SAYS("K\xff", "255");
    SAYS("M\xff\xff", "65535");
    SAYS("J\xff\xff\xff\xff", "-1");
    SAYS("\x8a\0", "0");
    SAYS("\x8a\1\x80", "-128");
    SAYS("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "9223372036854775807");
    SAYS("\x8a\x09\0\0\0\0\0\0\0\0\1", "18446744073709551616");
    SAYS("\x8a\x09\0\0\0\0\0\0\0\0\xff", "-18446744073709551616");
    SAYS("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff", "-1");
    SAYS("\x8b\x09\0\0\0\0\0\0\0\0\0\0\0\0", "0");
    SAYS("G\x3f\xf0\0\0\0\0\0\0", "1.0");
    SAYS("G\x3f\xb9\x99\x99\x99\x99\x99\x9a", "0.1");
    SAYS("G\x80\0\0\0\0\0\0\0", "-0.0");
    SAYS("G\x7f\xf8\0\0\0\0\0\0", "{\"$\":\"float\",\"value\":\"nan\"}");
    SAYS("G\xff\xf0\0\0\0\0\0\0", "{\"$\":\"float\",\"value\":\"-inf\"}");
}

static void texts(void)
{
    SAYS("X\2\0\0\0\xc3\xa9", "\"\xc3\xa9\"");
    SAYS("\x8c\3a\"\n", "\"a\\\"\\u000a\"");
    SAYS("U\1a", "\"a\"");
    SAYS("C\4\0\xff\x10z", "{\"$\":\"bytes\",\"base64\":\"AP8Qeg==\"}");
    SAYS("\x96\3\0\0\0\0\0\0\0abc", "{\"$\":\"bytes\",\"base64\":\"YWJj\"}");
    SAYS("c_codecs\nencode\nX\3\0\0\0a\xc3\xa9X\6\0\0\0latin1\x86R",
         "{\"$\":\"bytes\",\"base64\":\"Yek=\"}");
    SAYS("c__builtin__\nbytes\n)R", "{\"$\":\"bytes\",\"base64\":\"\"}");
}

static void containers(void)
{
    SAYS("](K\1Ne", "[1,null]");
    SAYS("]K\1a", "[1]");
    SAYS("(K\1K\2l", "[1,2]");
    SAYS(")", "{\"$\":\"tuple\",\"items\":[]}");
    SAYS("(K\1K\2K\3K\4t", "{\"$\":\"tuple\",\"items\":[1,2,3,4]}");
    SAYS("}(U\1bK\1U\1aK\2u", "{\"b\":1,\"a\":2}");
    SAYS("}U\1$K\1s", "{\"$\":\"dict\",\"items\":[[\"$\",1]]}");
    SAYS("}(K\1]K\2Nu", "{\"$\":\"dict\",\"items\":[[1,[]],[2,null]]}");
    SAYS("}K\1K\2\x86)s", "{\"$\":\"dict\",\"items\":[[{\"$\":\"tuple\",\"items\":[1,2]},"
                          "{\"$\":\"tuple\",\"items\":[]}]]}");
    SAYS("ccollections\nOrderedDict\n)R(U\1aK\1u}U\1xNsb",
         "{\"$\":\"ordered\",\"items\":[[\"a\",1]]}");
    SAYS("\x8f(K\1K\2\x90", "{\"$\":\"set\",\"items\":[1,2]}");
    SAYS("(K\1\x91", "{\"$\":\"frozenset\",\"items\":[1]}");
    SAYS("c__builtin__\nset\n](K\1e\x85R", "{\"$\":\"set\",\"items\":[1]}");
    SAYS("ctorch\nSize\n(K\2K\3t\x85R", "{\"$\":\"size\",\"items\":[2,3]}");
    SAYS("ctorch\nbfloat16\n", "{\"$\":\"dtype\",\"name\":\"torch.bfloat16\"}");
    SAYS("ctorch\ndevice\nU\4cudaK\1\x86R", "{\"$\":\"device\",\"name\":\"cuda:1\"}");
    SAYS("ctorch\ndevice\nU\3cpu\x85R", "{\"$\":\"device\",\"name\":\"cpu\"}");
    SAYS("]q\0(h\0h\0e0](K\1q\1h\1e", "[1,1]");
}

/* Whatever it names, nothing happens: it is refused, or left out. */
static void unknown(void)
{
    static const char evil[] = "\x80\2}(U\1aK\1U\4evil(cos\nsystem\nU\5rm -r\x85R"
                               "\x31" /* dropped by POP_MARK, and pushed again */
                               "cos\nsystem\nU\5rm -r\x85RU\1bK\2u.";
    CHECK_EQ(load(evil, sizeof evil - 1, false), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "'evil': os.system"));
    says(evil, sizeof evil - 1, "{\"a\":1,\"b\":2}");
    CHECK_EQ(tagged.skips, 1);
    CHECK(!strcmp(tagged.skipped, "evil: os.system\n"));
    SAYS("](K\1cm\nC\n)\x81}b(U\1aK\1uK\2e", "[1,null,2]");
    SAYS("}(K\1cm\nC\nK\2K\3u", "{\"$\":\"dict\",\"items\":[[2,3]]}");
    SAYS("cm\nf\n)R)R", "null"); /* a call of what a call gave */
}

static void malformed(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        int code;
        const char *why;
    } cases[] = {
#define CASE(bytes, code, why) {bytes, sizeof bytes - 1, code, why}
        CASE("", -EBADMSG, "too early"),
        CASE("N", -EBADMSG, "too early"),
        CASE(".", -EBADMSG, "one value"),
        CASE("NN.", -EBADMSG, "one value"),
        CASE("(N.", -EBADMSG, "one value"),
        CASE("\x80\1N.", -ENOTSUP, "protocol 1"),
        CASE("\x80\6N.", -ENOTSUP, "protocol 6"),
        CASE("i", -ENOTSUP, "0x69 at byte 0"),
        CASE("0.", -EBADMSG, "to drop"),
        CASE("N(0.", -EBADMSG, "to drop"),
        CASE("1.", -EBADMSG, "mark is missing"),
        CASE("t.", -EBADMSG, "mark is missing"),
        CASE("N\x86.", -EBADMSG, "more than there is"),
        CASE("N(N\x86.", -EBADMSG, "more than there is"),
        CASE("(Nd.", -EBADMSG, "without a value"),
        CASE("}(Nu.", -EBADMSG, "without a value"),
        CASE("Na.", -EBADMSG, "nothing to add to"),
        CASE("NNa.", -EBADMSG, "takes nothing"),
        CASE("]NNs.", -EBADMSG, "takes nothing"),
        CASE("}Na.", -EBADMSG, "takes nothing"),
        CASE("](Na.", -EBADMSG, "nothing to add to"),
        CASE("](Nee.", -EBADMSG, "mark is missing"),
        CASE("h\0.", -EBADMSG, "unknown number"),
        CASE("q\0.", -EBADMSG, "out of order"),
        CASE("Nq\1.", -EBADMSG, "out of order"),
        CASE("Nr\xff\xff\xff\xff.", -EBADMSG, "out of order"),
        CASE("X\xff\xff\xff\xff"
             "a.",
             -EBADMSG, "too early"),
        CASE("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.", -EBADMSG, "too early"),
        CASE("\x8b\xff\xff\xff\x7f.", -EBADMSG, "too early"),
        CASE("U\1\xff.", -EBADMSG, "UTF-8"),
        CASE("U\3\xed\xa0\x80.", -EBADMSG, "UTF-8"),
        CASE("cabc", -EBADMSG, "without an end"),
        CASE("cabc\nd", -EBADMSG, "without an end"),
        CASE("NN\x93.", -EBADMSG, "no text"),
        CASE("NR.", -EBADMSG, "without arguments"),
        CASE("N)R.", -EBADMSG, "no name"),
        CASE("ca\nb\nNR.", -EBADMSG, "without arguments"),
        CASE("NNb.", -EBADMSG, "has none"),
        CASE("NQ.", -EBADMSG, "not described"),
        CASE("ctorch\nSize\nN\x85R.", -EBADMSG, "torch.Size"),
        CASE("ccollections\nOrderedDict\n]Na\x85R.", -EBADMSG, "OrderedDict"),
        CASE("c__builtin__\ncomplex\n)R.", -EBADMSG, "complex"),
        CASE("c_codecs\nencode\nX\3\0\0\0\xe2\x82\xacU\6latin1\x86R.", -EBADMSG, "encode"),
        CASE("}(U\1aNU\1aNu.", -EBADMSG, "'a' twice"),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = load(cases[i].bytes, cases[i].size, true);
        if (code != cases[i].code || !strstr(weir_fail_last(), cases[i].why))
            fprintf(stderr, "case %zu: %d, %s\n", i, code, weir_fail_last());
        CHECK_EQ(code, cases[i].code);
        CHECK(strstr(weir_fail_last(), cases[i].why));
    }
}

static void cut_short(void)
{
    static const char whole[] =
        "\x80\4\x95\1\0\0\0\0\0\0\0}\x94(\x8c\1a\x94](K\1M\2\3J\4\5\6\7\x8a\2\1\2G\3\4\5\6\7\0\1\2e"
        "U\1b\x8c\1m\x94\x8c\1n\x94\x93)\x81}bX\1\0\0\0cca\nb\n)RU\1dC\2xyu.";
    OK(load(whole, sizeof whole - 1, true));
    for (size_t size = 0; size < sizeof whole - 1; size++)
        CHECK_EQ(load(whole, size, true), -EBADMSG);
}

/* What a few bytes can make large is bounded: the depth, the number of values, what is copied. */
static void bombs(void)
{
    enum { SIZE = 1 << 20 };
    char *bytes = malloc(SIZE);
    CHECK(bytes);
    size_t size = 0;
    /* Forty lists, each with the one before twice. */
    memcpy(bytes, "]q\0", 3);
    size = 3;
    for (int i = 0; i < 40; i++) {
        memcpy(bytes + size, "0](h?h?eq?", 10);
        bytes[size + 4] = bytes[size + 6] = (char)i;
        bytes[size + 9] = (char)(i + 1);
        size += 10;
    }
    bytes[size++] = '.';
    CHECK_EQ(load(bytes, size, false), -E2BIG);
    /* A list in a list in a list …: read without recursion, and refused as a state. */
    memset(bytes, ']', SIZE / 2);
    memset(bytes + SIZE / 2, 'a', SIZE / 2 - 1);
    bytes[SIZE - 1] = '.';
    CHECK_EQ(load(bytes, SIZE, false), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "nested too deeply"));
    /* A long text that is encoded again and again. */
    size = (size_t)sprintf(bytes, "c_codecs\nencode\nq%cX%c%c%c%c", 0, 0, 0, 4, 0);
    memset(bytes + size, 'x', 0x40000);
    size += 0x40000;
    size += (size_t)sprintf(bytes + size, "U%clatin1%cq%c0", 6, 0x86, 1);
    bytes[size++] = '0';
    while (size + 16 < SIZE) {
        memcpy(bytes + size, "h\0h\1R0", 6);
        size += 6;
    }
    memcpy(bytes + size, "N.", 2);
    CHECK_EQ(load(bytes, size + 2, false), -E2BIG);
    free(bytes);
}

static void cycles(void)
{
    static const char list[] = "]q\0h\0a.", dict[] = "}q\0(U\1ah\0u.",
                      object[] = "ca\nb\n)Rq\0h\0b.";
    CHECK_EQ(load(list, sizeof list - 1, true), -ENOTSUP);
    CHECK(strstr(weir_fail_last(), "contains itself"));
    CHECK_EQ(load(dict, sizeof dict - 1, true), -ENOTSUP);
    OK(load(object, sizeof object - 1, true));
}

/* The same name again gets a number, and so does one that looks like a number was given. */
static void unique_names(void)
{
    static const char *const given[][2] = {
        {"w", "w"}, {"w", "w~2"}, {"w~2", "w~2~2"}, {"w", "w~3"}, {"", ""}, {"", "~2"},
    };
    struct weir_names names = {0};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
        CHECK(!strcmp(weir_names_give(&names, &arena, given[i][0], strlen(given[i][0])),
                      given[i][1]));
    for (int i = 0; i < 1000; i++) { /* the table grows */
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        CHECK(!strcmp(weir_names_give(&names, &arena, name, strlen(name)), name));
    }
    CHECK(!strcmp(weir_names_give(&names, &arena, "w", 1), "w~4"));
    CHECK(!strcmp(weir_names_give(&names, &arena, "999", 3), "999~2"));
    weir_names_free(&names);
}

int main(void)
{
    RUN(unique_names);
    RUN(numbers);
    RUN(texts);
    RUN(containers);
    RUN(unknown);
    RUN(malformed);
    RUN(cut_short);
    RUN(bombs);
    RUN(cycles);
    weir_arena_free(arena);
    weir_tagged_free(&tagged);
    return TEST_RESULT;
}
