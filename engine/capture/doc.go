// Package capture writes the frames of a device to a pcapng file that tcpdump,
// tshark and Wireshark open: nanosecond time stamps, and the direction of each
// frame.
//
// A Writer writes to the io.Writer that it is given and to nothing else. It is safe for
// concurrent use: the tap of a device calls it under the progress lock, one of several
// queues.
package capture
