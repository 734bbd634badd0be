// Package dissect says what is in a packet of a capture: what lies around the packet of RoCE (link
// headers of several types, VLAN tags, tunnels), its headers with the verdict on its ICRC, and what
// the payload says where that is known: messages of the connection manager, those of package msg,
// and datagrams of package encap.
//
// A Dissector is given the packets of a capture in their order. Dissect fills a Packet, which is
// reused; AppendLine prints it on one line, Tree lists every field by name. Fields have the names
// that Wireshark knows them by (infiniband.bth.destqp), so that what is printed can be used as a
// filter there; what only we know begins with "xroce.".
//
// A packet of which the capture kept only the beginning is dissected as far as its headers go: the
// payload counts as zeros then, and the ICRC is not judged. UDP datagrams in IP fragments are put
// together: the fragment that was missing last is dissected as the whole packet. Fragments that
// overlap end their datagram, as RFC 8200 4.5 wants it of IPv6 and Linux does of both.
//
// Nothing that a packet says is believed. It may have as many layers as maxLayers; a Dissector
// keeps what a decoder of package roce/msg/dissect does, and as many datagrams of which fragments
// are missing as maxDatagrams. Nothing here does I/O, and it belongs to one caller at a time.
package dissect
