package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/xsk/vethpair"
)

// railsDocument reads what an end has printed, and wants it to have as many rails.
func railsDocument(t *testing.T, i *invocation, devices string) msgDocument {
	t.Helper()
	i.exited(t, exitOK)
	var d msgDocument
	if err := json.Unmarshal([]byte(i.stdout), &d); err != nil {
		t.Fatalf("%v in %s", err, i.stdout)
	}
	var names []string
	for _, r := range d.Rails {
		names = append(names, r.Device)
	}
	if got := strings.Join(names, ","); got != devices || d.Device != devices {
		t.Errorf("rails over %s, devices %s, not %s", got, d.Device, devices)
	}
	return d
}

// TestMsgRails: a test over two interfaces at each end tells what went by each. Where an end was
// not scheduled for long a rail may go down: then it is done again, for some time.
func TestMsgRails(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []struct{ test, flags string }{
		{"pingpong", "-e -n 100 --size 300000 --protocol put"},
		{"stream", "-n 100 --size 300000 --protocol get --depth 4 --peers 2"},
		{"rpc", "-n 100 --size 300000 --protocol put --depth 2 -e"},
	} {
		flags := strings.Fields("msg " + c.test + " --json --grace 60s " + c.flags)
		var moved [2]uint64
		var down []msgRailJSON
		patiently(func() bool {
			server := b.startListening(t, append(flags, "-d", "xr1,xr2")...)
			client := b.run(t, append(flags, "-d", "xr3,xr4", "192.0.2.1,192.0.2.2")...)
			moved, down = [2]uint64{}, nil
			for _, d := range []msgDocument{
				railsDocument(t, client, "xr3,xr4"), railsDocument(t, server.wait(t), "xr1,xr2"),
			} {
				for i, r := range d.Rails {
					if moved[i] += r.Read + r.Written; !r.Up {
						down = append(down, r)
					}
				}
			}
			return len(down) == 0
		})
		if len(down) > 0 || moved[0] == 0 || moved[1] == 0 {
			t.Errorf("%s: %d bytes by rail, down: %+v", c.test, moved, down)
		}
	}
}

// TestMsgAwaitsRails: a test begins when a rail has come that was late, and says so when it begins
// without one.
func TestMsgAwaitsRails(t *testing.T) {
	t.Parallel()
	for _, comes := range []bool{true, false} {
		b, network := simBench(t)
		block := func(blocked bool) {
			for _, way := range [][2]byte{{2, 4}, {4, 2}} {
				from, to := [6]byte{2, 0, 0, 0, 0, way[0]}, [6]byte{2, 0, 0, 0, 0, way[1]}
				err := network.SetDirection(from, to, sim.Faults{Blocked: blocked})
				if err != nil {
					t.Error(err)
				}
			}
		}
		block(true)
		flags := strings.Fields("msg pingpong -n 5 --size 64 --grace 60s")
		server := b.startListening(t, append(flags, "-d", "xr1,xr2")...)
		if comes { // when one that did not wait would be over
			defer time.AfterFunc(100*time.Millisecond, func() { block(false) }).Stop()
		}
		client := b.run(t, append(flags, "-d", "xr3,xr4", "192.0.2.1,192.0.2.2")...)
		server.wait(t).exited(t, exitOK)
		client.exited(t, exitOK)
		said := strings.Contains(client.stderr, "not all rails have come up=1 rails=2") ||
			strings.Contains(client.stderr, `not all rails have come" up=1 rails=2`)
		if down := strings.Contains(client.stdout, "down: "); said == comes || down == comes {
			t.Errorf("comes %v: %s%s", comes, client.stdout, client.stderr)
		}
	}
}

// TestMsgRailIsCut: a rail is cut while a test runs, which goes on by the other one to its end.
func TestMsgRailIsCut(t *testing.T) {
	t.Parallel()
	b, network := simBench(t)
	flags := strings.Fields("msg stream -e -n 20000 --size 200 --grace 60s")
	server := b.startListening(t, append(flags, "-d", "xr1,xr2")...)
	// It is cut by what the client prints before the first message: who looks at that from
	// elsewhere may come when all is over.
	b.change = func(a *app) {
		a.stdout = &doingWriter{Writer: a.stdout, text: "Depth", do: func() {
			for _, way := range [][2]byte{{1, 3}, {3, 1}} {
				from, to := [6]byte{2, 0, 0, 0, 0, way[0]}, [6]byte{2, 0, 0, 0, 0, way[1]}
				if err := network.SetDirection(from, to, sim.Faults{Blocked: true}); err != nil {
					t.Error(err)
				}
			}
		}}
	}
	client := b.start(t, append(flags, "-d", "xr3,xr4", "192.0.2.1,192.0.2.2")...)
	for _, i := range []*invocation{client.wait(t), server.wait(t)} {
		i.exited(t, exitOK)
		contains(t, i.stdout, ", down: ", ", up: ")
	}
}

// A doingWriter does something when some text is written through it, once.
type doingWriter struct {
	io.Writer
	text string
	do   func()
}

func (w *doingWriter) Write(b []byte) (int, error) {
	if w.text != "" && strings.Contains(string(b), w.text) {
		w.text = ""
		w.do()
	}
	return w.Writer.Write(b)
}

// TestRootMsgRails does each test between two namespaces with two interfaces each.
func TestRootMsgRails(t *testing.T) {
	p, in := pair(t, vethpair.Options{MTU: 4200})
	wire, err := p.AddWire(vethpair.Options{MTU: 4200})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []string{"pingpong", "stream", "rpc"} {
		flags := strings.Fields("msg " + test + " --json -e -n 100 --size 300000 --protocol get " +
			"-d xr0,xr1 --grace 60s")
		server := in(vethpair.A).startListening(t, flags...)
		client := in(vethpair.B).run(t, append(flags,
			fmt.Sprintf("%s,%s", p.A.IPv4.Addr(), wire[vethpair.A].IPv4.Addr()))...)
		railsDocument(t, client, "xr0,xr1")
		for _, r := range railsDocument(t, server.wait(t), "xr0,xr1").Rails {
			if r.Read == 0 {
				t.Errorf("%s: %+v", test, r)
			}
		}
	}
}
