// Package mem keeps protection domains, memory keys and memory regions, and
// moves payload between packets and regions.
//
// A region is an address range with an owner, not a Go slice: a work request
// or a peer names bytes by address and key, and every access is checked
// against the key that it came with (IBA 10.6.3, 11.2.7). The order of checks
// is: key exists, protection domain, region is valid, access rights, range,
// and for atomic accesses alignment.
//
// Keys are unpredictable: the 24-bit index is drawn at random and the low 8
// bits, the variant, are random too. Lookup takes no lock. Deregistering takes
// the key out first; the caller then makes sure that no queue still works with
// the region (the engine passes through each queue's progress lock) before it
// lets go of the memory. Invalidating leaves the region in place with a key that
// is of no use until the owner makes it valid again.
//
// Atomic accesses are made by the CPU with sync/atomic on the memory itself. So
// they are atomic with everything that does the same: other queues, goroutines
// of the application, other processes that map the memory (IBV_ATOMIC_GLOB).
// They are not atomic with Load and Store, which copy bytes, as a READ or WRITE
// that overlaps an atomic operation on hardware is not.
package mem
