package sim

import (
	"errors"
	"math"
	"slices"
	"testing"

	"xroce/roce"
	"xroce/xsk"
)

var macs = [2][6]byte{{2, 1}, {2, 2}}

// testNetwork joins two ports.
func testNetwork(t *testing.T, seed uint64, f Faults) (*VirtualClock, *Network, [2]*Port) {
	t.Helper()
	clock := &VirtualClock{}
	n, err := NewNetwork(seed, clock, f)
	if err != nil {
		t.Fatal(err)
	}
	var ports [2]*Port
	for i := range ports {
		if ports[i], err = n.NewPort(PortConfig{MAC: macs[i], MTU: 1500}); err != nil {
			t.Fatal(err)
		}
	}
	return clock, n, ports
}

// send transmits count frames from port 0 to a MAC address; each carries its
// number.
func send(t *testing.T, p *Port, to [6]byte, count int) {
	t.Helper()
	for i := range count {
		var tx [1]xsk.TxFrame
		if p.Reserve(tx[:]) != 1 {
			t.Fatal("no free frame")
		}
		copy(tx[0].Data, to[:])
		tx[0].Data[6], tx[0].Data[7] = byte(i>>8), byte(i)
		tx[0].Len = 60
		p.Transmit(tx[:])
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

// drain returns the numbers of all frames that arrive, in order.
func drain(c *VirtualClock, p *Port) (got []int) {
	for {
		var rx [8]xsk.RxFrame
		count := p.Receive(rx[:])
		for _, f := range rx[:count] {
			got = append(got, int(f.Head[6])<<8|int(f.Head[7]))
		}
		p.Release(rx[:count])
		if count > 0 {
			continue
		}
		at, ok := p.NextArrival()
		if !ok {
			return got
		}
		c.AdvanceTo(at)
	}
}

func TestCleanWireKeepsOrder(t *testing.T) {
	c, _, ports := testNetwork(t, 1, Faults{Delay: 10, Jitter: 1000})
	send(t, ports[0], macs[1], 500)
	if n := ports[1].Receive(make([]xsk.RxFrame, 1)); n != 0 {
		t.Error("a frame arrived before its time")
	}
	got := drain(c, ports[1])
	if len(got) != 500 || !slices.IsSorted(got) {
		t.Errorf("%d frames, sorted %t", len(got), slices.IsSorted(got))
	}
	if c.Now() < 10 || c.Now() > 1010 {
		t.Errorf("the last arrived at %d", c.Now())
	}
}

// TestEachFaultDoesWhatItSays switches one fault on at a time.
func TestEachFaultDoesWhatItSays(t *testing.T) {
	const frames = 4000
	for _, tt := range []struct {
		name   string
		faults Faults
		count  func(Counts) uint64
		effect func(got []int) int // how many frames show the fault
	}{
		{
			"drop",
			Faults{Drop: 0.1},
			func(c Counts) uint64 { return c.Dropped },
			func(got []int) int { return frames - len(got) },
		},
		{
			"dup",
			Faults{Dup: 0.1},
			func(c Counts) uint64 { return c.Duplicated },
			func(got []int) int { return len(got) - frames },
		},
		{
			"reorder",
			Faults{Reorder: 0.1, Delay: 100, ReorderBy: 1e6},
			func(c Counts) uint64 { return c.Reordered },
			func(got []int) int {
				late, most := 0, -1
				for _, n := range got {
					if n < most {
						late++
					}
					most = max(most, n)
				}
				return late
			},
		},
	} {
		c, n, ports := testNetwork(t, 7, tt.faults)
		send(t, ports[0], macs[1], frames)
		counted := tt.count(n.Counts())
		shown := uint64(tt.effect(drain(c, ports[1])))
		if math.Abs(float64(counted)-frames/10) > 100 {
			t.Errorf("%s: %d of %d frames", tt.name, counted, frames)
		}
		// Of frames held back, the last ones have nothing to be overtaken by.
		if shown > counted || shown < counted-counted/20 {
			t.Errorf("%s: counted %d, seen %d", tt.name, counted, shown)
		}
	}
}

func TestCorruptFlipsFewBits(t *testing.T) {
	_, n, ports := testNetwork(t, 1, Faults{Corrupt: 1})
	send(t, ports[0], macs[1], 100)
	rx := make([]xsk.RxFrame, 100)
	if got := ports[1].Receive(rx); got != 100 || n.Counts().Corrupted != 100 {
		t.Fatalf("%d received, %d corrupted", got, n.Counts().Corrupted)
	}
	for i, f := range rx {
		want := make([]byte, 60)
		copy(want, macs[1][:])
		want[6], want[7] = byte(i>>8), byte(i)
		flipped := 0
		for j := range want {
			for d := want[j] ^ f.Head[j]; d != 0; d &= d - 1 {
				flipped++
			}
		}
		// Two flips of one bit cancel, so even none is possible of three.
		if flipped > 3 {
			t.Errorf("frame %d has %d flipped bits", i, flipped)
		}
	}
}

func TestNobodyAndEverybody(t *testing.T) {
	_, n, ports := testNetwork(t, 1, Faults{})
	send(t, ports[0], [6]byte{2, 99}, 3)
	send(t, ports[0], macs[1], portQueue+5)
	c := n.Counts()
	if c.Unknown != 3 || c.Overflow != 5 {
		t.Errorf("unknown %d, overflow %d", c.Unknown, c.Overflow)
	}
	if err := errors.Join(ports[1].Close(), ports[1].Close()); err != nil {
		t.Error(err)
	}
	send(t, ports[0], macs[1], 1)
	if n.Counts().Unknown != 4 {
		t.Error("a closed port still receives")
	}
	if err := ports[1].Flush(); err == nil {
		t.Error("a closed port sends")
	}
}

func TestRefusals(t *testing.T) {
	clock := &VirtualClock{}
	for _, f := range []Faults{{Drop: 1.1}, {Dup: -0.1}, {Corrupt: math.NaN()}, {Delay: -1}} {
		if _, err := NewNetwork(1, clock, f); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	_, n, _ := testNetwork(t, 1, Faults{})
	if err := n.SetFaults(Faults{Reorder: 2}); err == nil {
		t.Error("SetFaults accepts a chance of 2")
	}
	if _, err := n.NewPort(PortConfig{MAC: macs[0], MTU: 1500}); err == nil {
		t.Error("a MAC address twice")
	}
	if _, err := n.NewPort(PortConfig{MAC: [6]byte{2, 3}, MTU: maxMTU + 1}); err == nil {
		t.Error("an MTU beyond the largest")
	}
}

func TestReturnedFramesAreFreeAgain(t *testing.T) {
	_, _, ports := testNetwork(t, 1, Faults{})
	tx := make([]xsk.TxFrame, txFrames+1)
	for range 3 {
		if got := ports[0].Reserve(tx); got != txFrames {
			t.Fatalf("reserved %d", got)
		}
		ports[0].Return(tx[:txFrames])
	}
}

// TestClosedPort: nobody sleeps in a port that is closed, where no wake-up would come.
func TestClosedPort(t *testing.T) {
	_, _, ports := testNetwork(t, 1, Faults{})
	if err := ports[0].Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"wait": ports[0].Wait(-1), "flush": ports[0].Flush(),
	} {
		if !errors.Is(err, xsk.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}

type idle struct{ deadline roce.Time }

func (i *idle) Progress() bool                  { return false }
func (i *idle) NextDeadline() (roce.Time, bool) { return i.deadline, i.deadline != 0 }

func TestRunEnds(t *testing.T) {
	c, n, _ := testNetwork(t, 1, Faults{})
	never := func() bool { return false }
	if err := n.Run(c, 100, never, &idle{}); !errors.Is(err, ErrStuck) {
		t.Errorf("nothing to happen: %v", err)
	}
	if err := n.Run(c, 100, never, &idle{200}); err == nil || errors.Is(err, ErrStuck) {
		t.Errorf("beyond the limit: %v", err)
	}
	if err := n.Run(c, 100, func() bool { return c.Now() == 50 }, &idle{50}); err != nil {
		t.Error(err)
	}
	if c.Now() != 50 {
		t.Errorf("ended at %d", c.Now())
	}
}
