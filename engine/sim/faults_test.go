package sim

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
)

// checkSum is what Counts promises at any time.
func checkSum(t *testing.T, n *Network) {
	t.Helper()
	c := n.Counts()
	in, out := c.Sent+c.Duplicated+c.Staled, c.Delivered+c.Lost()+uint64(n.UnderWay())
	if in != out {
		t.Errorf("%d frames went in, %d came out: %+v", in, out, c)
	}
}

// TestLosses switches on one way to lose frames at a time: as many are missing
// as are counted, and about as many as asked for.
func TestLosses(t *testing.T) {
	const frames = 4000
	for _, tt := range []struct {
		kind   Kind
		faults Faults
		least  uint64
		most   uint64
	}{
		{Dropped, Faults{Drop: 0.1}, 300, 500},
		{BurstLost, Faults{Burst: Burst{Enter: 0.01, Leave: 0.1, Drop: 1}}, 200, 600},
		{Blocked, Faults{Blocked: true}, frames, frames},
		{TooLong, Faults{MTU: 45}, frames, frames},
		{TooLong, Faults{MTU: 46}, 0, 0},
		// A clog begins with a frame that passes, and time stands still.
		{ClogLost, Faults{Clog: 0.01, ClogFor: 1000, ClogLoses: true}, 3000, frames - 1},
		// Ten frames of 60 bytes fit.
		{TailLost, Faults{Rate: 1e6, Queue: 600}, frames - 10, frames - 10},
	} {
		clock, n, ports := testNetwork(t, 7, tt.faults)
		send(t, ports[0], macs[1], frames)
		checkSum(t, n)
		got := drain(clock, ports[1])
		counts := n.Counts()
		lost := counts.Of(tt.kind)
		if lost < tt.least || lost > tt.most || int(lost) != frames-len(got) {
			t.Errorf("%s: counted %d, missing %d", tt.kind, lost, frames-len(got))
		}
		checkSum(t, n)
	}
}

// TestBurstsAreLong compares the mean length of losses in a row with 1/Leave.
func TestBurstsAreLong(t *testing.T) {
	const frames = 16000
	clock, _, ports := testNetwork(t, 3, Faults{Burst: Burst{Enter: 0.01, Leave: 0.1, Drop: 1}})
	send(t, ports[0], macs[1], frames)
	bursts, lost, last := 0, 0, -1
	for _, i := range drain(clock, ports[1]) {
		if i > last+1 {
			bursts++
			lost += i - last - 1
		}
		last = i
	}
	if mean := float64(lost) / float64(bursts); math.Abs(mean-10) > 2 {
		t.Errorf("%d bursts, %.1f frames each, want 10", bursts, mean)
	}
}

func TestHeldFramesAreOvertakenByNumber(t *testing.T) {
	clock, n, ports := testNetwork(t, 5, Faults{
		Hold: 0.02, HoldFrames: 3, Delay: 10, ReorderBy: 1e6,
	})
	send(t, ports[0], macs[1], 2000)
	got := drain(clock, ports[1])
	late := 0
	for at, i := range got {
		overtaking := 0
		for _, j := range got[:at] {
			if j > i {
				overtaking++
			}
		}
		if overtaking > 0 {
			late++
		}
		// Others that are held count as passed, too.
		if overtaking > 4 {
			t.Errorf("%d frames overtook frame %d", overtaking, i)
		}
	}
	if held := int(n.Counts().Held); late < held-2 || late > held || held == 0 {
		t.Errorf("%d held, %d late", held, late)
	}
}

func TestClogDelaysAndReleases(t *testing.T) {
	clock, n, ports := testNetwork(t, 5, Faults{Clog: 1, ClogFor: 5000, Delay: 10})
	send(t, ports[0], macs[1], 10)
	if at, _ := n.NextArrival(); at != 5010 {
		t.Errorf("the first arrives at %d", at)
	}
	if got := drain(clock, ports[1]); len(got) != 10 || !slices.IsSorted(got) {
		t.Errorf("got %v", got)
	}
	if c := n.Counts(); c.Clogged != 10 {
		t.Errorf("%d clogged", c.Clogged)
	}
}

func TestRateSpacesFrames(t *testing.T) {
	_, n, ports := testNetwork(t, 5, Faults{Rate: 8e9}) // a byte each nanosecond
	send(t, ports[0], macs[1], 3)
	for i := range 3 {
		if at := ports[1].arrivals[i].at; at != roce.Time(60*(i+1)) {
			t.Errorf("frame %d arrives at %d", i, at)
		}
	}
	if _, ok := n.NextArrival(); !ok {
		t.Error("nothing arrives")
	}
}

func TestStaleCopiesComeLate(t *testing.T) {
	clock, n, ports := testNetwork(t, 5, Faults{Stale: 0.1, StaleBy: 1e6})
	send(t, ports[0], macs[1], 1000)
	got := drain(clock, ports[1])
	if stale := int(n.Counts().Staled); stale < 50 || len(got) != 1000+stale {
		t.Errorf("%d copies, %d frames", stale, len(got))
	}
	if clock.Now() < 9e5 {
		t.Errorf("the last copy came at %d", clock.Now())
	}
}

func TestLengthsChange(t *testing.T) {
	_, n, ports := testNetwork(t, 5, Faults{Truncate: 0.5, Extend: 0.25})
	send(t, ports[0], macs[1], 1000)
	var shorter, longer int
	var rx [1000]xsk.RxFrame
	for i := range ports[1].Receive(rx[:]) {
		switch l := rx[i].Len(); {
		case l < 60:
			shorter++
		case l > 60:
			longer++
		}
	}
	if c := n.Counts(); shorter < 400 || longer < 100 || c.Truncated < 400 || c.Extended < 200 {
		t.Errorf("%d shorter, %d longer, %+v", shorter, longer, c)
	}
}

// TestDirectionsDiffer blocks one way only.
func TestDirectionsDiffer(t *testing.T) {
	clock, n, ports := testNetwork(t, 1, Faults{})
	if err := n.SetDirection(macs[0], macs[1], Faults{Blocked: true}); err != nil {
		t.Fatal(err)
	}
	send(t, ports[0], macs[1], 5)
	send(t, ports[1], macs[0], 5)
	if got := drain(clock, ports[1]); len(got) != 0 {
		t.Errorf("%v passed", got)
	}
	if got := drain(clock, ports[0]); len(got) != 5 {
		t.Errorf("%v came back", got)
	}
	if !n.Direction(macs[0], macs[1]).Blocked {
		t.Error("the direction forgot")
	}
	if err := n.SetFaults(Faults{}); err != nil {
		t.Fatal(err)
	}
	send(t, ports[0], macs[1], 5)
	if got := drain(clock, ports[1]); len(got) != 5 {
		t.Errorf("%v passed after the end", got)
	}
}

// roceFrame is a frame with an opcode and a number, long enough for a rule.
func roceFrame(op wire.Opcode, qpn uint32, number byte) []byte {
	f := make([]byte, 80)
	copy(f, macs[1][:])
	f[6], f[7], f[12] = 0, number, 8
	f[42], f[47], f[48], f[49] = byte(op), byte(qpn>>16), byte(qpn>>8), byte(qpn)
	return f
}

func TestRules(t *testing.T) {
	middle := []wire.Opcode{wire.RCWriteMiddle}
	for name, tt := range map[string]struct {
		rule Rule
		want []int
	}{
		"third middle to 17": {Rule{Opcodes: middle, DestQP: 17, Nth: 3}, []int{0, 1, 2, 3, 5}},
		"from the second":    {Rule{Opcodes: middle, Nth: 2, Times: 9}, []int{0, 1}},
		"every one":          {Rule{}, nil},
		"others":             {Rule{DestQP: 18}, []int{0, 1, 2, 3, 4, 5}},
		"from elsewhere":     {Rule{From: macs[1]}, []int{0, 1, 2, 3, 4, 5}},
		"twice":              {Rule{Nth: 1, Copies: 1}, []int{0, 0, 1, 2, 3, 4, 5}},
		"late":               {Rule{Nth: 2, Delay: 100}, []int{0, 2, 3, 4, 5, 1}},
		"flipped":            {Rule{Nth: 2, Flip: 64}, []int{0, 0, 2, 3, 4, 5}},
	} {
		clock, n, ports := testNetwork(t, 1, Faults{})
		if err := n.SetRules(tt.rule); err != nil {
			t.Fatal(err)
		}
		for i := range byte(6) {
			op := wire.RCWriteMiddle
			if i == 0 {
				op = wire.RCWriteFirst
			}
			var tx [1]xsk.TxFrame
			ports[0].Reserve(tx[:])
			tx[0].Len = copy(tx[0].Data, roceFrame(op, 17, i))
			if name == "third middle to 17" && i == 2 {
				copy(tx[0].Data, roceFrame(op, 18, i))
			}
			ports[0].Transmit(tx[:])
			if err := ports[0].Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if got := drain(clock, ports[1]); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		checkSum(t, n)
	}
	_, n, _ := testNetwork(t, 1, Faults{})
	if n.SetRules(Rule{Nth: -1}) == nil {
		t.Error("a rule for frame -1")
	}
}

// TestHostileRepairsTheICRC flips bits of the payload of a real packet.
func TestHostileRepairsTheICRC(t *testing.T) {
	var tmpl wire.Template
	err := tmpl.Init(wire.Path{
		Framing: wire.FramingV2IPv4, Src: wire.GIDFromIPv4([4]byte{10, 0, 0, 1}),
		Dst: wire.GIDFromIPv4([4]byte{10, 0, 0, 2}), HopLimit: 64, DstMAC: macs[1],
	})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 2000)
	wire.BTH{Opcode: wire.RCSendMiddle, PKey: wire.DefaultPKey}.Put(frame[tmpl.Len():])
	frame = frame[:tmpl.Seal(frame, wire.BTHLen+1024, 1)]
	for _, hostile := range []bool{false, true} {
		_, n, ports := testNetwork(t, 1, Faults{Corrupt: 1, Hostile: hostile})
		for range 50 {
			var tx [1]xsk.TxFrame
			ports[0].Reserve(tx[:])
			tx[0].Len = copy(tx[0].Data, frame)
			ports[0].Transmit(tx[:])
		}
		if err := ports[0].Flush(); err != nil {
			t.Fatal(err)
		}
		var rx [50]xsk.RxFrame
		right, changed := 0, 0
		for i := range ports[1].Receive(rx[:]) {
			var p wire.Packet
			if p.Decode(rx[i].Head, nil) == wire.OK && p.VerifyICRC() {
				right++
			}
			if !bytes.Equal(rx[i].Head, frame) {
				changed++
			}
		}
		if changed < 49 || hostile != (right > 25) || !hostile && right > 5 {
			t.Errorf("hostile %t: %d right, %d changed; %+v", hostile, right, changed, n.Counts())
		}
	}
}

// TestPortLimits tries the small rings that a port may have.
func TestPortLimits(t *testing.T) {
	clock := &VirtualClock{}
	n, err := NewNetwork(1, clock, Faults{})
	if err != nil {
		t.Fatal(err)
	}
	var ports [2]*Port
	for i := range ports {
		ports[i], err = n.NewPort(PortConfig{
			MAC: macs[i], MTU: 1500, TxFrames: 2, RxBurst: 3, RxQueue: 4, Chunk: 128,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var tx [3]xsk.TxFrame
	if got := ports[0].Reserve(tx[:]); got != 2 {
		t.Errorf("reserved %d of 2", got)
	}
	if held, _ := ports[0].Held(); held != 2 {
		t.Errorf("%d frames are held, want 2", held)
	}
	ports[0].Return(tx[:2])
	for range 6 {
		ports[0].Reserve(tx[:1])
		tx[0].Len = 200
		copy(tx[0].Data, macs[1][:])
		ports[0].Transmit(tx[:1])
		if err := ports[0].Flush(); err != nil {
			t.Fatal(err)
		}
	}
	var rx [8]xsk.RxFrame
	if got := ports[1].Receive(rx[:]); got != 3 || len(rx[0].Head) != 128 || len(rx[0].Tail) != 72 {
		t.Errorf("received %d, %d and %d bytes", got, len(rx[0].Head), len(rx[0].Tail))
	}
	if _, held := ports[1].Held(); held != 3 {
		t.Errorf("%d frames are held, want 3", held)
	}
	ports[1].Release(rx[:3])
	if c := n.Counts(); c.Overflow != 2 {
		t.Errorf("%d overflowed, want 2", c.Overflow)
	}
	if err := ports[1].Close(); err != nil || n.Counts().Unreceived != 1 {
		t.Errorf("%v, %d unreceived", err, n.Counts().Unreceived)
	}
	checkSum(t, n)
	for _, c := range []PortConfig{{TxFrames: -1}, {RxBurst: -1}, {RxQueue: -1}, {Chunk: 64}} {
		c.MAC = [6]byte{9}
		if _, err := n.NewPort(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
