// Package pager lets memory be registered whose pages are absent (on-demand paging).
//
// A region names addresses of the process, and what is mapped there at the moment of an
// access is what is accessed. No translation is kept, so none can be stale. Nothing is
// pinned either, and nothing is registered with the kernel: the application's munmap,
// madvise and mremap do not wait for this package.
//
// An access asks mincore(2) first whether its pages are present. If they are, it copies;
// if not, it asks a worker for them and fails with mem.FaultPage, without waiting. The
// worker brings them in with madvise(2), MADV_POPULATE_READ or MADV_POPULATE_WRITE,
// 64 pages at a time. Addresses where nothing is mapped, or that mapped memory cannot be
// brought in for (behind the end of a truncated file, memory without the right), are
// mem.FaultUnmapped: at once, or after the worker was told so.
//
// One question is about a block of 64 pages and its answer holds for 100 us, if the pager
// is told the time. Between the question and the copy a page may go again. Then the copy
// takes an ordinary page fault, on the thread that copies: a short one as a rule.
// Memory that is unmapped or truncated under the copy raises SIGSEGV or SIGBUS, which
// becomes mem.FaultUnmapped. The same short fault is taken for a page that is present but
// not in the process's page tables, as one of the page cache, or not writable yet, as one
// that a write copies. Of files that others own and the process may not write mincore(2)
// says that all is present, and then a copy may wait for the disk.
//
// What was seen present is remembered, one bit a page. A page that is absent or unmapped
// later was taken away, by the application or the kernel: that is an invalidation, and
// counted when an access meets it. Of one region no more than 4096 pieces of 128 MiB are
// remembered; behind those nothing is counted, and all else works.
//
// Memory that is mapped all the time but may lose what is behind it, as the mapping of a
// file that is cut off, needs no such question: a Guard makes the copy alone, with the same
// end of SIGBUS. Supported tells whether the kernel has what paging is made of.
//
// A Pager serves one device and is safe for concurrent use. Its workers start with its
// first region and end with Close.
package pager
