// Package mem keeps protection domains, memory keys, memory regions and memory
// windows, and moves payload between packets and memory.
//
// A region is an address range with an owner, not a Go slice: a work request
// or a peer names bytes by address and key, and every access is checked
// against the key that it came with (IBA 10.6.3, 11.2.7). The order of checks
// is: key exists, protection domain, queue pair, key is valid, access rights, not
// changed under way, range, and for atomic accesses alignment.
//
// What a key stands for at one time is a view, which never changes. Registering,
// re-registering, binding, invalidating put another view in its place, so an
// access, which looks once and takes no lock, is made wholly under one of them. A
// message is more than one access: it carries the epoch in which it began, and a
// key that was changed later refuses it.
//
// A key may also stand for pieces of other keys, by a Layout. It is memory behind the
// interface space, as memory with absent pages is, memory that may be taken away
// (Guard), and memory in several slices.
//
// Keys are unpredictable: the 24-bit index is drawn at random and the low 8
// bits, the variant, are random too. Deregistering takes the key out first; the
// caller then makes sure that no queue still works with the region (the engine
// passes through each queue's progress lock) before it lets go of the memory.
// Invalidating leaves the key in place, of no use until its owner makes it valid
// again.
//
// Atomic accesses are made by the CPU with sync/atomic on the memory itself. So
// they are atomic with everything that does the same: other queues, goroutines
// of the application, other processes that map the memory (IBV_ATOMIC_GLOB).
// They are not atomic with Load and Store, which copy bytes, as a READ or WRITE
// that overlaps an atomic operation on hardware is not.
//
// The package imports the table of numbers (roce/internal/handle) and nothing else of
// ours; address.go alone turns addresses into memory. Keys have a lock for changes and none
// for lookups; keys, regions and windows are safe for concurrent use. Who registers memory
// owns it, and keeps it until Deregister has returned and the queues were passed through.
package mem
