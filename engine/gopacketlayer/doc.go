// Package gopacketlayer teaches google/gopacket the headers of RoCE, so that
// tools and tests decode them with the rest of a packet. It is a leaf: the data
// path does not use it. What a header means and which headers an opcode carries
// it asks package wire.
//
// [Register] connects the layers to UDP port 4791 and EtherType 0x8915. A RoCE
// packet then decodes as Ethernet, IP, UDP (or GRH), BTH, one layer for each
// extended header, and the payload without padding. Padding and ICRC are fields
// of the BTH layer, because gopacket has no layer behind the payload.
//
// gopacket takes lengths from the IP and UDP headers less strictly than
// wire.Packet does, so it decodes some packets that the data path refuses.
//
// It does no I/O. Layers belong to who decodes; Register may be called by anybody and at
// any time, and changes the tables of gopacket once.
package gopacketlayer
