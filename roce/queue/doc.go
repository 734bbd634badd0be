// Package queue holds what an application and the queue pairs pass to each other: work
// queues with what was posted, shared receive queues, XRC domains, and completion queues
// with what was done. It knows no queue pair and no packet.
//
// Who owns what:
//
//   - A WorkQueue belongs to one QP. The application posts under its lock, and the QP takes
//     entries under the progress lock of its queue.
//   - An SRQ serves many QPs, of several queues maybe. Posting and taking both hold its lock.
//   - A CQ gets completions from QPs under progress locks, and the application polls it and
//     arms it. All of it holds the lock of the CQ, but an idle Poll and NextDeadline take none.
//   - An XRCD finds SRQs by number, under a lock of its own.
//
// Locks are taken in this order: the progress lock, that of an XRCD, of work queues, of
// a CQ. mem.Keys call WriteBack of a CQ with their lock held; what a CQ asks of them
// under its own, Store and AddWriteBacker, takes no lock that is held then. No lock of
// this package is held when a function of the application is called.
//
// Nothing here reads a clock, starts a goroutine, logs, or allocates once the memory of a
// queue is there. It may import clock, mem and verbs.
package queue
