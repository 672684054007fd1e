/* example.c - the C interface in one page: put, get a range, see damage. Built by the tests.
 *
 *   cc example.c $(pkg-config --cflags --libs weir) && ./a.out /tmp/store
 */
#include <stdio.h>
#include <string.h>
#include <weir.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, weir_error_text());
    return 1;
}

int main(int argc, char **argv)
{
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;

    weir_store *store;
    if (weir_store_open(&store, argc > 1 ? argv[1] : "mem:", &opts))
        return fail("open");

    /* Nothing is visible before the commit; closing without one drops what was written. */
    weir_put *put;
    weir_put_result result;
    if (weir_put_open(&put, store, "greetings/hello", NULL) ||
        weir_put_write(put, "hello, ", 7) || weir_put_write(put, "world", 5) ||
        weir_put_commit(put, &result))
        return fail("put");
    weir_put_close(put);
    printf("stored %d bytes, level %s\n", (int)result.size_bytes, weir_level_name(result.level));

    /* Any range, verified on arrival. */
    weir_object *object;
    char text[6] = "";
    size_t got;
    if (weir_object_open(&object, store, "greetings/hello") ||
        weir_object_read(object, text, 5, 7, &got))
        return fail("get");
    weir_object_close(object);
    printf("read back '%s'\n", text);

    int code = weir_remove(store, "greetings/hello");
    weir_store_close(store);
    return code || strcmp(text, "world") ? fail("remove") : 0;
}
