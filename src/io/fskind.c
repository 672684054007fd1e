/* fskind.c - see fskind.h. Numbers that linux/magic.h lacks are their owners' own. */
#include "io/fskind.h"

#include <linux/magic.h>
#include <stddef.h>

#include "util/sys.h"

static const struct weir_fskind kinds[] = {
    {EXT4_SUPER_MAGIC, "ext4", false, false, false},
    {XFS_SUPER_MAGIC, "xfs", false, false, false},
    {BTRFS_SUPER_MAGIC, "btrfs", false, false, false},
    {TMPFS_MAGIC, "tmpfs", false, false, false},
    {RAMFS_MAGIC, "ramfs", false, false, false},
    {OVERLAYFS_SUPER_MAGIC, "overlay", false, false, false},
    {F2FS_SUPER_MAGIC, "f2fs", false, false, false},
    {0x2fc12fc1, "zfs", false, false, false},
    {0xca451a4e, "bcachefs", false, false, false},
    {NFS_SUPER_MAGIC, "nfs", true, true, false},
    {SMB_SUPER_MAGIC, "smb", true, true, false},
    {CIFS_SUPER_MAGIC, "smb", true, true, false},
    {SMB2_SUPER_MAGIC, "smb", true, true, false},
    {V9FS_MAGIC, "9p", true, true, false},
    {CEPH_SUPER_MAGIC, "ceph", true, false, false},
    {FUSE_SUPER_MAGIC, "fuse", true, false, false},
    {0x0bd00bd0, "lustre", true, false, true},
    {0x47504653, "gpfs", true, false, false},
    {0x19830326, "beegfs", true, false, false},
};

const struct weir_fskind *weir_fskind_of(uint64_t magic)
{
    static const struct weir_fskind other = {0, "other", true, false, false};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].magic == (uint32_t)magic)
            return &kinds[i];
    return &other;
}

const struct weir_fskind *weir_fskind_at(int fd)
{
    struct weir_sys_space space;
    return weir_fskind_of(weir_sys->space(fd, &space) ? 0 : space.magic);
}
