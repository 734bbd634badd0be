package engine_test

import (
	"bytes"
	"testing"

	"xroce/encap"
	"xroce/encap/ipoib"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// TestIPoIBBroadcast sends an ARP request of IPoIB to the broadcast group of a partition: the
// member in it has it byte for byte, and one that joined the group in another partition has not.
func TestIPoIBBroadcast(t *testing.T) {
	inWorlds(t, engine.Options{PKeys: segments}, func(t *testing.T, w *world) {
		const index = 1
		group := ipoib.BroadcastGID(segments[index], ipoib.ScopeLinkLocal)
		a := datagramSeat(t, w.devs[0], engine.QPInit{PKeyIndex: index})
		b := datagramSeat(t, w.devs[1], engine.QPInit{PKeyIndex: index})
		other := datagramSeat(t, w.devs[1], engine.QPInit{})
		b.attach(t, group)
		other.attach(t, group)
		b.recv(t, 1, 0, 200)
		other.recv(t, 1, 0, 200)
		gids := w.devs[0].GIDs()
		arp := ipoib.ARP{
			Op: ipoib.ARPRequest, SenderIP: gids[gidIPv4].Addr(),
			Sender:   ipoib.Address{QPN: a.qp.QPN(), GID: gids[0]},
			TargetIP: w.devs[1].GIDs()[gidIPv4].Addr(),
		}
		packet := make([]byte, ipoib.ARPLen)
		arp.Put(packet)
		template := encap.Template{Format: encap.IPoIB, Room: 2048}
		payload := make([]byte, template.Room)
		n, reason := template.Put(payload, encap.ARP, packet)
		if reason != encap.OK {
			t.Fatal(reason)
		}
		copy(a.mr.Bytes(), payload[:n])
		ah := a.handle(t, group, gidIPv6)
		a.send(t, roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, n)},
			AH: ah, RemoteQPN: wire.MulticastQP, RemoteQKey: qkey,
		})
		w.succeed(a.cq, 1)
		wc := w.succeed(b.cq, 1)[0]
		var p encap.Packet
		if r := p.Decode(encap.IPoIB, b.mr.Bytes()[grhLen:wc.ByteLen]); r != encap.OK ||
			p.Kind != encap.ARP || !bytes.Equal(p.Datagram, packet) {
			t.Errorf("%s, %s: % x", r, p.Kind, p.Datagram)
		}
		if got, err := ipoib.ParseARP(p.Datagram); got != arp || err != nil {
			t.Errorf("%+v (%v)", got, err)
		}
		w.run(func() bool { return counterOf(t, w.devs[1], "drop_bad_pkey") == 1 })
		var wcs [1]roce.Completion
		if n, err := other.cq.Poll(wcs[:]); n != 0 || err != nil {
			t.Errorf("in another partition: %+v (%v)", wcs[0], err)
		}
	})
}
