/* Plan files: what is there is taken, what is wrong is told by line and name. */
#include <errno.h>

#include "plan/file.h"
#include "test.h"

static struct weir_plan_file file;

static int read_text(const char *text)
{
    return weir_plan_file_read(&file, text, strlen(text));
}

static void whole(void)
{
    struct weir_plan_in in = {0};
    OK(read_text("{\"model\": {\"parameters\": \"70B\", \"state\": \"weights\"},\n"
                 " \"cluster\": {\"gpus\": 512, \"node_mtbf\": \"5y\"},\n"
                 " \"storage\": {\"write_rate\": 1e11, \"interval\": 1800,\n"
                 "             \"amplification\": 2.5e0}}"));
    CHECK_EQ(file.count, 7);
    for (unsigned i = 0; i < file.count; i++)
        OK(weir_opt_set(&file.at[i].key->opt, &in, file.at[i].text));
    CHECK(in.parameters == 70000000000 && !strcmp(in.state, "weights") && in.gpus == 512);
    CHECK(in.write_rate == 100000000000 && in.interval_ns == 1800000000000);
    CHECK(in.amplification == 2.5 && in.node_mtbf_ns == 157680000000000000);
    CHECK(file.at[2].line == 2 && file.at[6].line == 4);
    OK(read_text("{}"));
    CHECK_EQ(file.count, 0);
}

static void mistakes(void)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "line 1: it is not JSON"},
        {"{\n\"model\": {\"parameters\": }}", "line 2: it is not JSON"},
        {"[]", "line 1: a plan is an object"},
        {"{} 5", "line 1: it is not JSON"},
        {"{\"modle\": {}}", "line 1: there is no section 'modle': did you mean 'model'?"},
        {"{\"xyzzy\": {}}", "they are model, data, cluster, storage, safety, cost and simulate"},
        {"{\"model\": 7}", "line 1: the section 'model' is not an object"},
        {"{\n\n\"model\": {\"paramters\": 1}}",
         "line 3: model.paramters: there is no such key: did you mean 'parameters'?"},
        {"{\"model\": {\"gpus\": 1}}", "model.gpus: 'gpus' belongs to the section 'cluster'"},
        {"{\"cluster\": {\"gpus\": 1,\n\"gpus\": 2}}",
         "line 2: cluster.gpus is there already, in line 1"},
        {"{\"cluster\": {\"gpus\": true}}", "cluster.gpus is neither a text"},
        {"{\"cluster\": {\"gpus\": [1]}}", "cluster.gpus is neither a text"},
        {"{\"cluster\": {\"gpus\": null}}", "cluster.gpus is neither a text"},
        {"{\"cluster\": {\"gpus\": -1}}", "cluster.gpus: '-1' is not a number"},
        {"{\"cluster\": {\"gpus\": 0}}", "cluster.gpus: '0' is out of range (1 to 10000000)"},
        {"{\"cluster\": {\"gpus\": 1.5}}", "cluster.gpus: '1.5' is not a whole number"},
        {"{\"cluster\": {\"gpus\": \"many\"}}", "cluster.gpus: 'many' is not a number"},
        {"{\"storage\": {\"read_rate\": 1e29}}", "storage.read_rate: '"},
        {"{\"storage\": {\"read_rate\": 1e400}}", "storage.read_rate: 1e400 is too large"},
        {"{\"storage\": {\"read_rate\": NaN}}", "it is not JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(read_text(cases[i].text), -EINVAL);
        if (!strstr(weir_fail_last(), cases[i].said))
            fprintf(stderr, "case %zu: not '%s'\n", i, cases[i].said);
        CHECK(strstr(weir_fail_last(), cases[i].said));
    }
}

/* There is room for all keys at once. */
static void all_keys(void)
{
    unsigned count = 0;
    for (const struct weir_plan_key *key = weir_plan_keys; key->section; key++)
        count++;
    CHECK(count > 60 && count <= WEIR_PLAN_VALUES_MAX);
}

int main(void)
{
    RUN(whole);
    RUN(mistakes);
    RUN(all_keys);
    return TEST_RESULT;
}
