// Package verbs is the vocabulary of verbs as plain data: the types and states of a
// queue pair with the state graph, its attributes, work requests and what each
// operation of a send queue is, completions, statuses, events and errors. The numbers
// are those of libibverbs, so that a binding can pass them through.
//
// It knows no queue and no queue pair: the tables here say what is allowed and how it
// looks in packets, roce.QP does it. It imports the words of time, packets and memory
// (clock, wire, mem) and nothing else.
//
// Values belong to the caller that made them. The tables are written once, when the program
// starts, and may be read by any goroutine; an AH does not change.
//
// Sources: IBA volume 1, chapters 10 and 11; infiniband/verbs.h of rdma-core.
package verbs
