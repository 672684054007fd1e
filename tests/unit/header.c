/* include/weir.h alone is C11, strictly, and everything it promises can be used with nothing else
 * included: see also header.cc, which is this as C++.
 */
#include "weir.h"

int header_use(void);

int header_use(void)
{
    weir_store_options store_opts;
    weir_put_options put_opts;
    weir_store *store = 0;
    weir_store_options_init(&store_opts);
    weir_put_options_init(&put_opts);
    int code = weir_store_open(&store, "mem:", &store_opts);
    weir_store_close(store);
    return code == -WEIR_EUNKNOWN || WEIR_OBJECT_BYTES_MAX < WEIR_META_BYTES_MAX ||
           store_opts.struct_size != sizeof store_opts;
}

int main(void)
{
    return header_use();
}
