// Package asavie is a second xsk.Link over github.com/asavie/xdp v0.3.3, an
// AF_XDP library that shares no code with package xsk. It is there to compare
// and to cross-check: a frame that goes out through one and comes in through the
// other was understood by both. For everything else use xsk.
//
// The library has faults that this package builds a fence around:
//
//   - Close leaves the rings mapped, which keeps the kernel's socket and the
//     queue. So a process can open each queue once; a second Open fails with
//     ErrReopen.
//   - Transmit panics on ENETDOWN and other errors. They are caught and returned
//     by Flush.
//   - Transmit takes EAGAIN for success and leaves frames in the ring. Flush
//     drives the ring with Poll until nothing moves.
//   - Received frames count as free at once, and free frames are offered again
//     until they are queued. So this package copies frames out on Receive before
//     it refills, and copies them in on Transmit.
//   - NewSocket fails on a queue whose socket was just closed. Open tries again,
//     for five seconds.
//   - Bind flags are one variable of the package. Open sets it under a lock.
//   - Frames that the device drops (EBUSY) are not counted: Stats.TxBusy and the
//     other results of send calls stay 0, but TxNetDown.
//   - Index words are read and written without barriers. That works on amd64;
//     elsewhere Open fails with xsk.ErrNotSupported.
//   - Looking for free frames starts at frame 0 each time, so the cost of a batch
//     grows with the number of frames.
//   - Frames of several chunks are not supported.
//
// Close frees the frames and the descriptor. The mappings of the rings stay
// until the process ends.
package asavie
