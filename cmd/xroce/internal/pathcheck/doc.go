// Package pathcheck looks at the way between two hosts: whether RoCE packets pass in both
// directions, how large they may be, and by which addresses.
//
// The ends meet over TCP, where each says who it is, in JSON, a line a message. Then the
// client sends datagrams from a UD queue pair to the server's. The server says over TCP which
// came, and sends each back as it came, so what is lost on the way there is told from what is
// lost on the way back. A datagram that may be too large is followed by one that is not:
// when that came and the large one did not, the large one was lost, and no clock was asked.
//
// A server is no amplifier: it answers datagrams that carry a secret which was told over TCP,
// one datagram with one of the same size, and a bounded number of them for each of a bounded
// number of clients. Who has not said who he is gives way to others, and so does a client of a host
// that has more than another. What comes from the other end is checked; text of it is for
// cmd/xroce/internal/plain before it is printed.
package pathcheck
