// Command agent runs in the guest of package softroce and does what the host
// orders: it starts shell commands, sends what they print, and says how they
// ended. It ends when the host closes its end of the port.
//
//	agent member INTERFACE GROUP PROGRAM [ARGUMENT...]
//
// becomes a program in whose name the host is a member of a multicast group of IPv4. Soft-RoCE has
// the card take the frames of a group, but its packets are datagrams, and the IP stack takes those
// of groups alone of which somebody is a member.
package main
