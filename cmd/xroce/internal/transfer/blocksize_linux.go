package transfer

import "golang.org/x/sys/unix"

// blockSize is the size of the blocks that a file system counts, in bytes: that of its
// fragments, if it says so (kernel fs/statfs.c). Bsize is what it likes to be read in,
// which is more where the file system is a process (FUSE) or another host.
func blockSize(st *unix.Statfs_t) uint64 {
	if st.Frsize > 0 {
		return uint64(st.Frsize)
	}
	return uint64(st.Bsize)
}
