// Package filter says which packets of a capture are wanted, in the language of tcpdump
// (pcap-filter(7)) and in fields of RoCE:
//
//	host 192.0.2.1 and udp port 4791
//	ether[12:2] == 0x8915 or vlan 7
//	qpn == 0x11 and opcode == READ_REQUEST
//	verdict == dropped and not reason == psn_gap
//
// As with tcpdump, "not" binds most, and "and" and "or" bind alike, from left to right.
//
// Compile makes a Filter of an expression, which is bounded, so that it may come from
// a stranger, and tells with a caret where one is wrong. A Filter looks at packets without
// allocating; it is of one caller at a time.
package filter
