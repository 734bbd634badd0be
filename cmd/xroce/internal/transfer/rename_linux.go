package transfer

import "golang.org/x/sys/unix"

// renameNew renames a file in a directory and replaces nothing: then it fails with
// EEXIST. Not every file system has that (renameat2(2)), but those that do not have
// hard links.
func renameNew(dir int, from, to string) error {
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return linkNew(dir, from, to)
	}
	return err
}
