package gen_test

import (
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/roce/gen"
	"xroce/roce/wire"
)

// TestAnswer: who ended a flow is told how much of it came, where it listens, whatever the
// flow was of; and nothing else is answered.
func TestAnswer(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, kind := range []gen.Kind{gen.KindUDP, gen.KindRoCE} {
			f := flow(t, gen.Config{
				Kind: kind, Path: path(v6, v6), Sizes: gen.List(150), Flow: 4, Run: 2,
				Vary: []gen.Vary{{Field: gen.FieldSrcPort, Values: gen.List(1)}},
			})
			frame, answer := make([]byte, maxFrame), make([]byte, gen.MaxAnswer)
			if n := gen.Answer(answer, frame[:f.Next(frame, 1)], gen.Account{Received: 7}); n != 0 {
				t.Errorf("data is answered with %x", answer[:n])
			}
			end := frame[:f.End(frame, 2)]
			n := gen.Answer(answer, end, gen.Account{Received: 7})
			var r gen.Reader
			a := r.Read(answer[:n], nil)
			want := gen.Signature{Kind: gen.Report, Run: 2, Flow: 4, Seq: 7, Time: 2}
			p := path(v6, v6)
			if a.Signature != want || a.SrcMAC != p.DstMAC || a.Src.Addr() != p.Dst.Addr() {
				t.Errorf("%s, IPv6 %t: %+v of %x", kind, v6, a, answer[:n])
			}
			// It goes to where the frame came from.
			var back gen.Arrival
			if back = r.Read(end, nil); back.Src.Port() != 0xc001 {
				t.Errorf("the end came from %s", back.Src)
			}
		}
	}
	nowhere := path(false, false)
	nowhere.SrcPort = 0
	f := flow(t, gen.Config{Kind: gen.KindEthernet, Path: nowhere, Sizes: gen.List(60)})
	frame := make([]byte, maxFrame)
	answer := make([]byte, gen.MaxAnswer)
	if n := gen.Answer(answer, frame[:f.End(frame, 0)], gen.Account{Received: 1}); n != 0 {
		t.Errorf("a frame without addresses is answered with %d bytes", n)
	}
	// A header that claims to be longer than the usual one is no reason to panic.
	frame[14] = 0x4f
	gen.Answer(answer, frame[:60], gen.Account{Received: 1})
}

// TestAnswerWithoutIP: the end of a flow of frames without addresses of IP is a UDP datagram that a
// sink can answer, if the sender has an address.
func TestAnswerWithoutIP(t *testing.T) {
	v1 := func(v6 bool) wire.Path {
		p := path(v6, true)
		p.Framing = wire.FramingV1
		return p
	}
	for i, c := range []gen.Config{
		{Kind: gen.KindEthernet, Path: path(false, true), Sizes: gen.List(60)},
		{Kind: gen.KindEthernet, Path: path(true, false), Sizes: gen.List(60)},
		{Kind: gen.KindRoCE, Path: v1(false), Sizes: gen.List(150)},
		{Kind: gen.KindRoCE, Path: v1(true), Sizes: gen.List(150)},
	} {
		c.Flow, c.Run, c.DstPort = 4, 2, 99
		f := flow(t, c)
		frame, answer := make([]byte, maxFrame), make([]byte, gen.MaxAnswer)
		f.Next(frame, 1)
		end := frame[:f.End(frame, 2)]
		p := gopacket.NewPacket(end, layers.LayerTypeEthernet, gopacket.Default)
		udp, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if !ok || udp.DstPort != 99 || udp.SrcPort != 0xc001 || p.ErrorLayer() != nil {
			t.Errorf("%d ends with %x", i, end)
		}
		var r gen.Reader
		if s := r.Read(end, nil).Signature; s.Kind != gen.End || s.Seq != 1 || s.Flow != 4 {
			t.Errorf("%d ends with %+v", i, s)
		}
		a := r.Read(answer[:gen.Answer(answer, end, gen.Account{Received: 1})], nil)
		if a.Signature.Kind != gen.Report || a.SrcMAC != c.Path.DstMAC {
			t.Errorf("%d is answered with %+v", i, a)
		}
	}
}

// TestAnswerToNobody: what says that a group has sent it is not answered.
func TestAnswerToNobody(t *testing.T) {
	for what, at := range map[string]struct {
		off   int
		bytes []byte
	}{
		"a MAC address of a group": {6, []byte{1, 0, 0x5e, 0, 0, 1}},
		"the broadcast MAC":        {6, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		"an address of a group":    {26, []byte{224, 0, 0, 1}},
		"the broadcast address":    {26, []byte{255, 255, 255, 255}},
		"no address":               {26, []byte{0, 0, 0, 0}},
	} {
		f := flow(t, gen.Config{Path: path(false, false), Sizes: gen.List(64)})
		frame := make([]byte, maxFrame)
		frame = frame[:f.End(frame, 0)]
		answer := make([]byte, gen.MaxAnswer)
		if gen.Answer(answer, frame, gen.Account{Received: 1}) == 0 {
			t.Fatal("the end of a flow is not answered")
		}
		copy(frame[at.off:], at.bytes)
		if n := gen.Answer(answer, frame, gen.Account{Received: 1}); n != 0 {
			t.Errorf("from %s: it is answered with %x", what, answer[:n])
		}
	}
}
