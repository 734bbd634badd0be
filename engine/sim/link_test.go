package sim

import (
	"math"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
)

// plainFrame is a frame of n bytes to port 1.
func plainFrame(n int) []byte {
	frame := make([]byte, n)
	copy(frame, macs[1][:])
	return frame
}

// ipFrame is a RoCE packet with n bytes of payload from port 0 to port 1.
func ipFrame(t *testing.T, n int, ecn uint8, v6, tagged bool) []byte {
	t.Helper()
	p := wire.Path{
		Framing: wire.FramingV2IPv4, SrcMAC: macs[0], DstMAC: macs[1], TClass: 0x60 | ecn,
		Src: wire.GIDFromIPv4([4]byte{10, 0, 0, 1}), Dst: wire.GIDFromIPv4([4]byte{10, 0, 0, 2}),
		HopLimit: 64, SrcPort: 0xc000,
	}
	if tagged {
		p.Tags = wire.VLAN(7).Tags(0)
	}
	if v6 {
		p.Framing, p.Src, p.Dst = wire.FramingV2IPv6, wire.GID{0xfd, 15: 1}, wire.GID{0xfd, 15: 2}
	}
	var path wire.Template
	if err := path.Init(p); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, maxFrame)
	wire.BTH{Opcode: wire.UCSendOnly, PKey: wire.DefaultPKey}.Put(frame[path.Len():])
	return frame[:path.Seal(frame, wire.BTHLen+n, 1)]
}

// transmit sends a frame from a port.
func transmit(t *testing.T, p *Port, frame []byte) {
	t.Helper()
	var tx [1]xsk.TxFrame
	if p.Reserve(tx[:]) != 1 {
		t.Fatal("no free frame")
	}
	tx[0].Len = copy(tx[0].Data, frame)
	p.Transmit(tx[:])
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
}

// linkedNetwork is testNetwork with links of a byte a nanosecond, 500 ns long.
func linkedNetwork(t *testing.T, down Link) (*VirtualClock, *Network, [2]*Port) {
	t.Helper()
	c, n, ports := testNetwork(t, 1, Faults{})
	down.Rate, down.Delay = 8e9, 500
	for _, mac := range macs {
		if err := n.SetLinks(mac, Link{Rate: 8e9, Delay: 500}, down); err != nil {
			t.Fatal(err)
		}
	}
	return c, n, ports
}

// arrive runs the clock until a frame arrives at a port, and returns when and what.
func arrive(c *VirtualClock, n *Network, p *Port) (roce.Time, []byte) {
	for {
		var rx [1]xsk.RxFrame
		if p.Receive(rx[:]) == 1 {
			return c.Now(), rx[0].Head
		}
		at, ok := n.NextArrival()
		if !ok {
			return 0, nil
		}
		c.AdvanceTo(at)
	}
}

// TestLinksTakeTheirTime: a frame is sent twice, at the rate of each link, and frames from
// several ports meet in the queue of the second.
func TestLinksTakeTheirTime(t *testing.T) {
	c, n, ports := linkedNetwork(t, Link{})
	third, err := n.NewPort(PortConfig{MAC: [6]byte{2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	frame := plainFrame(1000)
	transmit(t, ports[0], frame)
	transmit(t, ports[0], frame)
	c.AdvanceTo(700)
	transmit(t, third, frame) // without a link of its own, so it comes first
	if got := n.UnderWay(); got != 3 {
		t.Errorf("%d frames under way", got)
	}
	for i, want := range []roce.Time{
		700 + 1000 + 500,
		1000 + 500 + 1000 - 500 + 700 + 500, // behind the third port's: 1700 to 2700
		2700 + 1000 + 500,
	} {
		if at, _ := arrive(c, n, ports[1]); at != want {
			t.Errorf("frame %d at %d, want %d", i, at, want)
		}
		if i == 0 {
			// 2200: the second frame has 500 bytes to go; the third comes at 2500.
			if got, most := n.QueueLength(macs[1]); got != 500 || most != 1200 {
				t.Errorf("%d bytes wait, %d at most", got, most)
			}
			if _, most := n.QueueLength(macs[1]); most != 500 {
				t.Errorf("%d bytes at most, asked again", most)
			}
		}
	}
	counts := n.Counts()
	if counts.Sent != 3 || counts.Delivered != 3 || counts.Lost() != 0 || counts.Marked != 0 {
		t.Errorf("%+v", counts)
	}
}

// TestLinkLosesWhatFindsItFull: a queue has room for so many bytes.
func TestLinkLosesWhatFindsItFull(t *testing.T) {
	c, n, ports := linkedNetwork(t, Link{Queue: 2500})
	if err := n.SetLinks(macs[0], Link{}, Link{}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		transmit(t, ports[0], plainFrame(1000)) // all at once
	}
	got := 0
	for at, _ := arrive(c, n, ports[1]); at != 0; at, _ = arrive(c, n, ports[1]) {
		got++
	}
	if counts := n.Counts(); got != 2 || counts.TailLost != 3 || counts.Delivered != 2 {
		t.Errorf("%d frames arrived, %+v", got, counts)
	}
}

// TestMarks: the share of frames that are marked grows from KMin to PMax at KMax, above which
// all are; marked frames are whole, those that may not be marked are left alone.
func TestMarks(t *testing.T) {
	l := &line{Link: Link{KMin: 1000, KMax: 3000, PMax: 0.4}}
	for waiting, want := range map[int]float64{
		0: 0, 999: 0, 1000: 0, 2000: 0.2, 2999: 0.3998, 3000: 1, 1 << 30: 1,
	} {
		if got := l.mark(waiting); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d bytes wait: a chance of %v, not %v", waiting, got, want)
		}
	}
	for _, v6 := range []bool{false, true} {
		for _, tagged := range []bool{false, true} {
			for ecn := range uint8(4) {
				c, n, ports := linkedNetwork(t, Link{KMax: 1, PMax: 1})
				transmit(t, ports[0], ipFrame(t, 1000, 0, v6, tagged)) // the queue
				transmit(t, ports[0], ipFrame(t, 200, ecn, v6, tagged))
				if _, first := arrive(c, n, ports[1]); len(first) < 1000 {
					t.Fatal("the first frame is short")
				}
				_, frame := arrive(c, n, ports[1])
				var p wire.Packet
				if r := p.Decode(frame, nil); r != wire.OK || !p.VerifyICRC() {
					t.Fatalf("IPv6 %t, tag %t, ECN %d: %s", v6, tagged, ecn, r)
				}
				want := 0x60 | wire.ECNCE
				if ecn == 0 {
					want = 0x60
				}
				if marked := n.Counts().Marked; p.TClass != want || (marked == 1) != (ecn != 0) {
					t.Errorf("ECN %d became traffic class %#x, %d marked", ecn, p.TClass, marked)
				}
			}
		}
	}
	for _, short := range [][]byte{nil, make([]byte, 19), make([]byte, 40)} {
		if markCE(short) {
			t.Error("marked what is no IP packet")
		}
	}
}

// TestBadLinks: what cannot be is refused.
func TestBadLinks(t *testing.T) {
	_, n, _ := testNetwork(t, 1, Faults{})
	for _, l := range []Link{
		{Rate: -1},
		{Delay: -1},
		{Queue: -1},
		{KMin: 2, KMax: 1},
		{KMin: -1},
		{PMax: math.NaN()},
		{PMax: 2},
	} {
		if n.SetLinks(macs[0], l, Link{}) == nil || n.SetLinks(macs[0], Link{}, l) == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	if n.SetLinks([6]byte{9}, Link{}, Link{}) == nil {
		t.Error("links for a port that is not there")
	}
	if got, most := n.QueueLength(macs[0]); got != 0 || most != 0 {
		t.Errorf("%d bytes wait without a link", got)
	}
}
