package perf_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"xroce/bench/interop/payload"
	"xroce/bench/softroce"
	"xroce/cmd/perfdump"
	"xroce/cmd/xroce/internal/perf"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// realClock is the time since a moment.
type realClock struct{ start time.Time }

func (c realClock) Now() roce.Time { return roce.Time(time.Since(c.start)) }

// ears hear a simulated network, for either end as if that were xroce.
type ears [2]payload.Payload

// hear takes what happens to a frame: that it was sent, which is no arrival yet, and
// that it arrived.
func (e *ears) hear(t *testing.T, event *sim.Event) {
	if event.Kind != sim.Sent && event.Kind != sim.Delivered || !payload.IsRoCE(event.Frame) {
		return
	}
	var p wire.Packet
	if reason := p.Decode(event.Frame, nil); reason != wire.OK {
		t.Errorf("a packet does not decode: %s", reason)
		return
	}
	sender := int(event.From[5]) - 1
	for i := range e {
		from := softroce.A
		if i != sender {
			from = softroce.B
		}
		e[i].Add(from, event.Frame, &p, event.Kind == sim.Sent)
	}
}

// converse runs a test between two ends of ours on a simulated network, and returns
// what was heard and the memory of both.
func converse(
	t *testing.T, c perf.Config, addrs [2]string, faults sim.Faults,
) (*ears, [2]*perfdump.Dump) {
	t.Helper()
	network, err := sim.NewNetwork(1, realClock{time.Now()}, faults)
	if err != nil {
		t.Fatal(err)
	}
	heard := &ears{}
	network.Observe(func(e *sim.Event) { heard.hear(t, e) })
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var dumps [2]*perfdump.Dump
	failed := make(chan error, len(dumps))
	for i := range dumps {
		own := c
		own.Dial = i == 0
		if _, err := own.Settle(true); err != nil {
			t.Fatal(err)
		}
		direct := own.Direct()
		own.OtherDrives = !direct
		port, err := network.NewPort(sim.PortConfig{
			Name: fmt.Sprintf("xr%d", i), MAC: [6]byte{2, 0, 0, 0, 0, byte(i + 1)}, MTU: 4200,
			Addrs: []netip.Addr{netip.MustParseAddr(addrs[i])},
			Yield: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		dev, err := engine.OpenLink(port, port, engine.Options{Direct: direct})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dev.Close() })
		dumps[i] = &perfdump.Dump{}
		go func() { failed <- perform(ctx, dev, l, own, dumps[i]) }()
	}
	for range dumps {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	network.Observe(nil)
	return heard, dumps
}

// perform is one end of a test.
func perform(
	ctx context.Context, dev *engine.Device, l net.Listener, c perf.Config, d *perfdump.Dump,
) error {
	meet := l.Accept
	if c.Dial {
		meet = func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	}
	conn, err := meet()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = perf.Run(ctx, dev, perf.NewSocket(dev, conn, c.Dial),
		perf.Options{Config: c, Tell: &perf.Record{}, Dump: d})
	return err
}

// conversation is a test as perftest makes it, with few messages.
func conversation(test perf.Test, size int) perf.Config {
	c := perf.Config{
		Test: test, Type: roce.TypeRC, QPs: 1, Size: size, Iters: 40, TxDepth: 16, RxDepth: 32,
		CQMod: 4, PostList: 1, RecvPostList: 1, Timeout: 17, GIDIndex: perf.AutoGID,
		Atomic: perf.FetchAndAdd, NoPeak: true,
	}
	if test.Verb == perf.Atomic {
		c.Size = payload.AtomicLen
	}
	if test.Latency {
		c.TxDepth, c.CQMod = 1, 1
	}
	return c
}

// The addresses of the two ends.
var (
	addrs4 = [2]string{"192.0.2.1", "192.0.2.2"}
	addrs6 = [2]string{"2001:db8::1", "2001:db8::2"}
)

// TestConversations: what two ends of ours say to each other is what their memory
// holds, on a whole and on a lossy network, and through a file.
func TestConversations(t *testing.T) {
	type talk struct {
		name   string
		c      perf.Config
		addrs  [2]string
		faults sim.Faults
	}
	var talks []talk
	for i, test := range perf.Tests {
		size := []int{1, 4096, 65536, 1000}[i%4]
		c := conversation(test, size)
		talks = append(talks, talk{test.Name(), c, addrs4, sim.Faults{}})
		if test.Latency {
			// Each message waits for the other end, so that nothing is ever too much for
			// it: what these services lose nobody sends again.
			if c.Type = roce.TypeUC; !test.Answered() {
				talks = append(talks, talk{test.Name() + " UC", c, addrs6, sim.Faults{}})
			}
			c.Type, c.Size = roce.TypeUD, min(size, 1000)
			if test.Verb == perf.Send {
				talks = append(talks, talk{test.Name() + " UD", c, addrs4, sim.Faults{}},
					talk{test.Name() + " UD, IPv6", c, addrs6, sim.Faults{}})
			}
			continue
		}
		c = conversation(test, 10000)
		talks = append(talks, talk{test.Name() + " with loss", c, addrs4, sim.Faults{Drop: 0.01}})
		c.QPs, c.Both, c.Atomic = 2, true, perf.CmpAndSwap
		talks = append(talks, talk{test.Name() + " -b -q 2", c, addrs6, sim.Faults{}})
	}
	for _, talk := range talks {
		t.Run(talk.name, func(t *testing.T) {
			heard, dumps := converse(t, talk.c, talk.addrs, talk.faults)
			least := talk.c.Iters * talk.c.Size
			var both int
			for i, d := range dumps {
				var file bytes.Buffer
				if _, err := d.WriteTo(&file); err != nil {
					t.Fatal(err)
				}
				d, err := perfdump.Read(&file)
				if err != nil {
					t.Fatal(err)
				}
				compared, faults := heard[i].Compare(d)
				if len(faults) > 0 {
					t.Errorf("end %d: %q", i, faults)
				}
				both += compared
			}
			if both < least {
				t.Errorf("%d bytes were compared, not %d at least", both, least)
			}
		})
	}
}

// TestConversationDamaged: each byte that an end has sent, or that came, matters: one
// that is another in its memory is found.
func TestConversationDamaged(t *testing.T) {
	for _, test := range perf.Tests {
		c := conversation(test, 5000)
		heard, dumps := converse(t, c, addrs4, sim.Faults{})
		for i, whole := range dumps {
			for at := 0; at < whole.Length; at += 501 {
				d := *whole
				d.After = slices.Clone(whole.After)
				d.After[at] ^= 0x40
				if _, faults := heard[i].Compare(&d); len(faults) != 1 {
					t.Fatalf("%s, end %d, byte %d: %q", test.Name(), i, at, faults)
				}
			}
		}
	}
}
