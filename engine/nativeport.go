package engine

import (
	"sync"
	"sync/atomic"

	"xroce/encap"
)

// A NativePort sends and receives raw packets of native InfiniBand on Ethernet: datagrams behind
// an LRH, in frames of EtherType encap.EtherTypeNative. A device has one at a time. No queue
// pair, key or completion queue is involved:
//
//	port, err := dev.OpenNative(engine.NativeConfig{})
//	route, err := port.NewRoute(peerMAC, encap.Template{Format: encap.Raw})
//	err = port.Send(route, encap.Ethernet, frame) // copied: frame is the caller's again
//
//	var list [64]engine.NativeDatagram
//	for {
//		for _, d := range list[:port.Poll(list[:])] {
//			use(&d) // borrowed until the next Poll
//		}
//		if err := port.Wait(ctx); err != nil {
//			return err
//		}
//	}
//
// A datagram that is longer than a packet goes in segments, where its format has them: a
// receiver sees these, and puts them together with an encap.Reassembler. Nothing is
// acknowledged or sent again.
//
// The XDP program lets the frames through while the port is open: those to the MAC address of
// the interface, and those to groups that were joined. Its methods are safe for concurrent use,
// but Poll is for one goroutine at a time.
type NativePort struct {
	device *Device
	queue  *queue // that it sends with
	stats  *nativeStats
	ready  chan struct{} // has a value when datagrams wait
	done   chan struct{} // closed with the port
	closed atomic.Bool
	notify func() // nil for nobody

	// groups are the MAC addresses that were joined; memberships is held while they change.
	groups cowMap[[6]byte, struct{}]

	id uint16 // of the next datagram in segments, under the progress lock

	// mu is one of the last locks. Under it, the ring of slots: held ones from first on,
	// which Poll has handed out, then those that wait, then free ones.
	mu      sync.Mutex
	slots   []nativeSlot
	first   int
	held    int
	waiting int
	packet  encap.Packet
}

// A nativeSlot has room for any datagram, also for one that is longer than the frames of the link
// were when the port was opened: the MTU may be raised meanwhile.
type nativeSlot struct {
	datagram NativeDatagram
	buf      []byte
}

func newNativeSlots(n int) []nativeSlot {
	const size = encap.MaxNative // what an LRH can say, so a datagram is shorter
	slots, memory := make([]nativeSlot, n), make([]byte, n*size)
	for i := range slots {
		slots[i].buf = memory[i*size:][:size:size]
	}
	return slots
}

// err says why nothing comes or goes any more, nil while it may.
func (p *NativePort) err() error {
	if p.closed.Load() {
		return ErrClosed
	}
	return p.device.failure()
}
