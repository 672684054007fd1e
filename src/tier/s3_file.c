/* s3_file.c - small files of the user's that hold secrets: read whole, wiped when freed. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>

#include "tier/s3_place.h"
#include "util/err.h"
#include "util/sys.h"

/* Until there is no more: files like a container's token have no size to ask for. */
static int read_all(struct weir_s3_file *file, int fd, const char *path, size_t max)
{
    while (file->size <= max) {
        ssize_t got =
            weir_sys->pread(fd, file->text + file->size, max + 1 - file->size, file->size);
        if (got < 0)
            return weir_fail((int)-got, "cannot read '%s': %s", path, weir_errno_text((int)-got));
        if (!got)
            return 0;
        file->size += (size_t)got;
    }
    return weir_fail(EFBIG, "'%s' is larger than %zu bytes", path, max);
}

int weir_s3_file_read(struct weir_s3_file *out, const char *path, size_t max)
{
    int fd = weir_sys->open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return weir_fail(-fd, "cannot open '%s': %s", path, weir_errno_text(-fd));
    struct weir_s3_file file = {weir_alloc(max + 2), 0};
    int code = file.text ? read_all(&file, fd, path, max) : weir_fail_memory();
    weir_sys->close(fd);
    if (code) {
        weir_s3_file_free(&file);
        return code;
    }
    file.text[file.size] = 0;
    *out = file;
    return 0;
}

void weir_s3_file_free(struct weir_s3_file *file)
{
    if (file->text)
        OPENSSL_cleanse(file->text, file->size);
    free(file->text);
    *file = (struct weir_s3_file){0};
}
