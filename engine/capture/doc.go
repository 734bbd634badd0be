// Package capture writes the frames of a device to a pcapng file that tcpdump,
// tshark and Wireshark open: nanosecond time stamps, and the direction of each
// frame.
package capture
