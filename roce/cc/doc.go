// Package cc decides how fast, and how much at a time, a queue pair may send.
//
// There is one rate, in kbit/s of frames, and one place that holds a queue pair to it: the
// Pacer. Whoever limits a queue pair, the RATE_LIMIT attribute and a congestion Controller,
// does so by that rate, so two limits cannot work against each other with timers of their
// own.
//
// A Controller is a machine: it is told of congestion notifications, acknowledgements,
// losses and time, and says what the flow may do. There are two, each as published:
//
//   - DCQCN: Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015.
//     The receiver answers marks of a switch with CNPs, the sender lowers its rate for
//     each and raises it again by timer and bytes.
//   - Swift: Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in
//     the Datacenter, SIGCOMM 2020. The sender measures the round trip and keeps it near a
//     target by a window. It needs no switch and no CNP.
//
// Notifier is the receiver's half of DCQCN, the notification point.
//
// The package knows frames by their length and time by what is passed in; it does
// not know packets, PSNs or queue pairs, and imports clock alone. A Pacer, a Controller and a
// Notifier belong to the progress lock of their queue pair.
package cc
