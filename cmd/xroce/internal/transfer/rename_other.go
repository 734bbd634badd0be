//go:build !linux

package transfer

// renameNew renames a file in a directory and replaces nothing: then it fails with
// EEXIST.
func renameNew(dir int, from, to string) error { return linkNew(dir, from, to) }
