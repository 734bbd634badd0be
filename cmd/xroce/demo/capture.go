package demo

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"xroce/engine/gopacketlayer"
	"xroce/roce"
	"xroce/roce/wire"
)

// A seen packet is what the verification needs of a captured one.
type seen struct {
	opcode   wire.Opcode
	psn      wire.PSN
	payload  int // bytes
	positive bool
}

// verifyCapture reads the capture with another decoder and checks that it has
// exactly the packets that the calls must produce.
func verifyCapture(file string, calls []call, t tally) (packets, again int, err error) {
	streams, packets, err := readCapture(file, calls[0].qpn, t)
	if err != nil {
		return packets, 0, err
	}
	asked, n := inOrder(streams[0], calls[0].first)
	again += n
	answers, acks := split(streams[1])
	// A READ answers with the PSNs that its request took: these begin where
	// the request stood.
	psn := calls[0].first
	for _, c := range calls {
		requests, responses := c.packets()
		ok, rest := sequence(asked, requests, psn)
		t.check(ok, "%s: its packets are not those of the capture from PSN 0x%06x on", c, psn)
		asked = rest
		if responses != nil {
			var n int
			answers, n = inOrder(answers, psn)
			again += n
			ok, answers = sequence(answers, responses, psn)
			t.check(ok, "%s: its responses are not those of the capture", c)
			psn = psn.Add(uint32(len(responses)))
			continue
		}
		psn = psn.Add(uint32(len(requests)))
		t.check(acked(acks, psn.Sub(1)), "%s: nothing acknowledges PSN 0x%06x", c, psn.Sub(1))
	}
	t.check(len(asked) == 0, "%d requests more than there were operations", len(asked))
	nak := 0
	for _, a := range acks {
		if !a.positive {
			nak++
		}
	}
	t.check(nak == 0 || again > 0, "%d negative acknowledgements without a repeated packet", nak)
	return packets, again, nil
}

// readCapture decodes every packet twice, by gopacket and by package wire, and
// returns what each host sent.
func readCapture(file string, qpn [2]uint32, t tally) (streams [2][]seen, packets int, err error) {
	gopacketlayer.Register()
	f, err := os.Open(file)
	if err != nil {
		return streams, 0, err
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		return streams, 0, fmt.Errorf("%s: %w", file, err)
	}
	var icrc, malformed int
	for {
		data, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return streams, packets, fmt.Errorf("%s: packet %d: %w", file, packets+1, err)
		}
		packets++
		var p wire.Packet
		other := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
		bth, ok := other.Layer(gopacketlayer.LayerTypeBTH).(*gopacketlayer.BTH)
		if p.Decode(data, nil) != wire.OK || !ok || other.ErrorLayer() != nil || bth.BTH != p.BTH {
			malformed++
			continue
		}
		if !p.VerifyICRC() {
			icrc++
		}
		s := seen{opcode: p.BTH.Opcode, psn: p.BTH.PSN, payload: p.PayloadLen()}
		if p.BTH.Opcode == wire.RCAck {
			s.positive = p.AETH().Syndrome.IsACK()
		}
		switch p.BTH.DestQP {
		case qpn[1]:
			streams[0] = append(streams[0], s)
		case qpn[0]:
			streams[1] = append(streams[1], s)
		default:
			malformed++
		}
	}
	t.check(packets > 0, "the capture is empty")
	t.check(malformed == 0, "%d of %d captured packets: gopacket and we do not agree",
		malformed, packets)
	t.check(icrc == 0, "%d of %d captured packets have a wrong ICRC", icrc, packets)
	return streams, packets, nil
}

// packets lists the packets that an operation must produce: those of host 0,
// and the READ responses of host 1.
func (c call) packets() (requests, responses []seen) {
	type ops struct{ first, middle, last, only wire.Opcode }
	table := map[roce.Opcode]ops{
		roce.OpSend: {
			wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLast, wire.RCSendOnly,
		},
		roce.OpSendImm: {
			wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLastImm, wire.RCSendOnlyImm,
		},
		roce.OpWrite: {
			wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLast, wire.RCWriteOnly,
		},
		roce.OpWriteImm: {
			wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLastImm, wire.RCWriteOnlyImm,
		},
		roce.OpRead: {
			wire.RCReadRespFirst, wire.RCReadRespMiddle, wire.RCReadRespLast, wire.RCReadRespOnly,
		},
	}
	o, pmtu := table[c.op], c.pmtu.Bytes()
	list := []seen{{opcode: o.only, payload: c.size}}
	if c.size > pmtu {
		list = []seen{{opcode: o.first, payload: pmtu}}
		left := c.size - pmtu
		for ; left > pmtu; left -= pmtu {
			list = append(list, seen{opcode: o.middle, payload: pmtu})
		}
		list = append(list, seen{opcode: o.last, payload: left})
	}
	if c.op == roce.OpRead {
		return []seen{{opcode: wire.RCReadRequest}}, list
	}
	return list, nil
}

// sequence tells whether the stream goes on with these packets, from this PSN.
func sequence(stream, want []seen, psn wire.PSN) (ok bool, rest []seen) {
	for i, w := range want {
		if i >= len(stream) {
			return false, nil
		}
		w.psn = psn.Add(uint32(i))
		if stream[i] != w {
			return false, stream
		}
	}
	return true, stream[len(want):]
}

// inOrder leaves out packets whose PSN was there already: those that were sent
// again because an answer was lost or late.
func inOrder(stream []seen, next wire.PSN) (fresh []seen, again int) {
	for _, s := range stream {
		if s.psn.Before(next) {
			again++
			continue
		}
		fresh = append(fresh, s)
		next = s.psn.Add(1)
	}
	return fresh, again
}

// split separates READ responses from acknowledgements.
func split(stream []seen) (answers, acks []seen) {
	for _, s := range stream {
		if s.opcode == wire.RCAck {
			acks = append(acks, s)
		} else {
			answers = append(answers, s)
		}
	}
	return answers, acks
}

// acked tells whether one of the acknowledgements is for the packet.
func acked(acks []seen, psn wire.PSN) bool {
	for _, a := range acks {
		if a.positive && a.psn == psn {
			return true
		}
	}
	return false
}
