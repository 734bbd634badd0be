// Package tunnel joins a TAP or TUN device with peers: what the kernel sends into it travels to
// a peer in one of the formats of package encap, over UD, RC or UC of a device or in native
// packets of InfiniBand, and what comes from peers goes into it.
//
//	inside, err := tunnel.OpenInside(tunnel.InsideConfig{Name: "tap0", Kind: tunnel.TAP})
//	t, err := tunnel.Open(dev, manager, inside, tunnel.Config{Peers: peers})
//	err = t.Run(ctx)
//
// A TAP has Ethernet frames, which a learning bridge directs (encap/bridge); a TUN has IP
// packets, which go by a table of prefixes. Peers are found by the connection manager and by
// nothing else: both ends tell each other a hello, and who differs in format, segment or
// partition, or is at none of the configured addresses, is refused. Peers may be learned from
// prefixes, too, of whom nothing is held before they have proved their address (learn.go); a TUN
// learns where hosts behind those are (hosts.go).
//
// # Data
//
// Each queue of the inside has a goroutine, its lane, that reads datagrams straight into
// registered memory, writes the headers before them and posts them; the engine copies them into
// frames. A lane shares nothing with others but the table of addresses. What comes is taken by
// one goroutine from all queue pairs, and written to the inside from where it was received.
//
// An inside with a PolledQueue has one thread for all of that, which drives the device, too, and
// sleeps for both: nothing is handed from one to another (loop.go). Where datagrams follow each
// other closely it looks for the next one for a while before it sleeps, as long as lately paid,
// and leaves the processor to others meanwhile (rest.go).
//
// Packets of TCP that the kernel left uncut, up to 64 KiB, go whole over RC, when the peer can
// tell its kernel so: how to cut them is in the immediate data of the message. Over UD they are
// cut here.
//
// A peer whose queue is full loses datagrams, as those of a switch port do, and holds up nobody
// else; when there is but one peer the inside waits, so that its kernel does.
//
// # Concurrency
//
// Methods of a Tunnel are safe for concurrent use. It owns the inside, and neither the device
// nor the manager.
package tunnel
