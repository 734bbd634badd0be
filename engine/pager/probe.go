package pager

import "sync"

// Supported tells why there is no on-demand paging in this process, as an error that wraps
// errors.ErrUnsupported, and returns nil where there is. It is tried once, with memory that
// is mapped for it: the kernel must tell which pages are present (mincore), which a filter
// of system calls or another kernel in the place of Linux may not do.
func Supported() error { return tried() }

var tried = sync.OnceValue(try)
