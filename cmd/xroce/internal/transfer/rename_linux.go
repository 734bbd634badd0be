package transfer

import "golang.org/x/sys/unix"

// renameNew renames a file in a directory and replaces nothing: then it fails with
// EEXIST. Where there is no such rename, it fails with EINVAL or ENOSYS.
func renameNew(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}
