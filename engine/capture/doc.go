// Package capture writes the frames of a device to a pcapng file that tcpdump,
// tshark and Wireshark open: nanosecond time stamps, and the direction of each
// frame.
//
// A Writer writes to the io.Writer that it is given and to nothing else. It is safe for
// concurrent use: the tap of a device calls it under the progress lock, one of several
// queues. So it only copies there, and a goroutine of its own writes. When that cannot keep
// up, because a disk is slow or the reader of a pipe pauses, frames are dropped; the packet
// behind the gap (epb_dropcount) and the statistics at the end (isb_ifdrop) say how many.
package capture
