package pathcheck

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestRun: all kinds of addresses, sizes and ports, between ends of the same MTU and not.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		mtu  [2]int
		path int
		want []string
	}{
		{[2]int{4200, 4200}, 4096, []string{"yes largest packet there: 4148 bytes"}},
		{[2]int{1500, 4200}, 1024, []string{
			"- MTU of the ends: 1500 here, 4200 there", "yes largest packet back: 1076 bytes",
		}},
	} {
		r, client, got, other := runWithPorts(t, c.mtu)
		for strings.Contains(got.text(), fmt.Sprintf("listen tcp 127.0.0.1:%d: ", other)) {
			r, client, got, other = runWithPorts(t, c.mtu) // another program has it by now
		}
		contains(t, got, append(c.want, "yes RoCE v2, IPv4: to 192.0.2.2: both ways",
			"yes RoCE v2, IPv6: to 2001:db8::2: both ways", "yes RoCE v2, link-local: to fe80::",
			"yes RoCE v1: to 192.0.2.2: both ways", "yes path MTU to use: ",
			"not tried: listen tcp 127.0.0.1:", ": open", "not tried: port 1 is none of the "+
				"tools",
		)...)
		if got.PathMTU != c.path || got.Device != "xr2" || got.MTU != c.mtu[1] {
			t.Errorf("%+v", got)
		}
		client.Close()
		if e := r.awaitEnd(t); e.err != nil || e.answered < 6 {
			t.Errorf("%+v", e)
		}
	}
}

// runWithPorts runs a client that asks for a port that is taken, and for another one that is free,
// which is returned.
func runWithPorts(t *testing.T, mtu [2]int) (r *rig, client *Client, got Result, other int) {
	t.Helper()
	r = newRig(t, sim.Faults{}, mtu[0], mtu[1])
	port := r.listener.Addr().(*net.TCPAddr).Port
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	other = free.Addr().(*net.TCPAddr).Port
	r.server.Ports = []int{port, other}
	client = r.dial(t)
	got, err = client.Run(t.Context(), []ToolPort{
		{Number: port, Tools: "taken"}, {Number: other, Tools: "open"}, {1, "strange"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, client, got, other
}

// TestRunLossy: what is lost now and then is not taken for what never comes.
func TestRunLossy(t *testing.T) {
	r := newRig(t, sim.Faults{Drop: 0.02}, 4200, 4200)
	client := r.dial(t)
	client.patience = timeout.Scaled(time.Second) // for what was lost
	got, err := client.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, got, "yes RoCE v2, IPv4", "yes largest packet there: 4148", "yes largest packet "+
		"back: 4148", "yes path MTU to use: 4096")
}

// TestRunSilent: when nothing passes it says so, and when nothing more passes, that.
func TestRunSilent(t *testing.T) {
	r := newRig(t, sim.Faults{Drop: 1}, 4200, 4200)
	client := r.dial(t)
	client.patience = time.Millisecond // nothing can come
	got, err := client.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, got, "no RoCE v2, IPv4: to 192.0.2.2: does not come -> a firewall")
	if got.PathMTU != 0 || strings.Contains(got.text(), "largest") {
		t.Errorf("%s", got.text())
	}
	to, ok := client.vector(ways()[0])
	if !ok {
		t.Fatal("no addresses")
	}
	ah, err := client.box.handle(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := client.try(t.Context(), ah, 1024, true); !errors.Is(err, ErrSilent) || f.there {
		t.Errorf("%+v, %v", f, err)
	}
}

// limit is a fate of datagrams for bisection.
func limit(there, back int) func(int) fate {
	return func(size int) fate { return fate{size <= there, size <= back} }
}

// TestLargest finds every limit, in a bounded number of steps.
func TestLargest(t *testing.T) {
	for most := smallDatagram; most <= 4096; most += step {
		at, steps := limit(most, most-step), 0
		got, err := bisect(smallDatagram, 4096, func(size int) (bool, error) {
			steps++
			return at(size).there, nil
		})
		if err != nil || got != most || steps > 12 {
			t.Errorf("limit %d: found %d in %d steps, %v", most, got, steps, err)
		}
	}
}

// TestServerBounds: a stranger's datagrams are not answered, a client's not without end, and
// there are no more clients than the server takes.
func TestServerBounds(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	client := r.dial(t)
	to, _ := client.vector(ways()[0])
	ah, err := client.box.handle(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	secret := client.secret
	client.secret[3]++
	if err := client.send(t.Context(), ah, smallDatagram); err != nil {
		t.Fatal(err)
	}
	client.secret = secret
	// The next is answered, and what came before it was not.
	f, sure, err := client.round(t.Context(), ah, smallDatagram, true)
	if err != nil || !f.there || !f.back || !sure || client.number != 2 {
		t.Errorf("%+v, %v, %v", f, sure, err)
	}
	second := r.dial(t)
	// Who was answered has said who he is.
	other, err := second.box.handle(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err = second.round(t.Context(), other, smallDatagram, true)
	if err != nil || !f.back {
		t.Errorf("%+v, %v", f, err)
	}
	conn := r.connect(t)
	var said report
	if err := newLine(conn).hear(&said, timeout.Scaled(lineTime)); err != nil ||
		said.Error != errBusy.Error() {
		t.Errorf("a third client of a host: %+v, %v", said, err)
	}
	if _, err := Dial(t.Context(), r.dev[0], r.connect(t)); err == nil ||
		!strings.Contains(err.Error(), "try again later") {
		t.Error(err)
	}
	if n := r.server.TurnedAway(); n != 2 {
		t.Errorf("%d were turned away", n)
	}
	client.Close()
	second.Close()
	if a, b := r.awaitEnd(t), r.awaitEnd(t); a.err != nil || b.err != nil ||
		a.answered+b.answered != 2 {
		t.Errorf("%+v, %+v", a, b)
	}
	r.dial(t) // there is room again
}

// visit has a client of a host enter, which says who it is if it greets, and returns it, nil for
// one that is turned away, and what it is told when it has to give way. The clock of a server that
// has none moves on from visit to visit.
func visit(s *Server, from string, greets bool) (g *guest, told *error) {
	told = new(error)
	if s.now == nil {
		begun := time.Now()
		s.now = func() time.Time { begun = begun.Add(greetTime); return begun }
	}
	g = &guest{
		addr: netip.MustParseAddr(from), hangUp: func(err error) { *told = err },
	}
	if !s.enter(g) {
		return nil, told
	}
	if greets {
		s.greeted(g)
	}
	return g, told
}

// TestServerIsForSeveralHosts: who has many addresses, as anybody has of IPv6, is still one host,
// and gives way to others; and who has one address keeps out none of its network, which on a link
// is everybody.
func TestServerIsForSeveralHosts(t *testing.T) {
	var s Server
	for i := range 2 * maxClients {
		visit(&s, fmt.Sprintf("2001:db8::%x", i+1), true)
	}
	for _, other := range []string{"fe80::1", "192.0.2.1"} {
		if g, _ := visit(&s, other, true); g == nil {
			t.Errorf("there is no room for %s", other)
		}
	}
	s = Server{}
	for range maxClients {
		visit(&s, "2001:db8::1", true)
	}
	for _, other := range []string{"2001:db8::2", "2001:db8::2", "2001:db8::3"} {
		if g, _ := visit(&s, other, true); g == nil {
			t.Errorf("there is no room for %s", other)
		}
	}
}

// TestWhoGivesWay: who has not said who he is gives way to anybody, and who has several clients
// with one of them to who has none; others do not.
func TestWhoGivesWay(t *testing.T) {
	const a, b, c, d, e = "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"
	for name, tt := range map[string]struct {
		guests []string
		silent int // that one does not greet, -1 for all of them do
		comes  string
		want   int // who gives way, -1 for nobody and who comes is turned away
	}{
		"two hosts keep out no third":      {[]string{a, b, a, b}, -1, c, 0},
		"of the host that has several":     {[]string{c, a, b, a}, -1, d, 1},
		"a host each":                      {[]string{a, b, c, d}, -1, e, -1},
		"a silent one":                     {[]string{a, b, c, d}, 2, e, 2},
		"one more of a host":               {[]string{a, b, b, c}, -1, a, -1},
		"in place of a silent one":         {[]string{a, b, b, c}, 3, a, 3},
		"a host's third":                   {[]string{a, a}, -1, a, -1},
		"in place of its silent one":       {[]string{a, a}, 1, a, 1},
		"not in place of others' silence":  {[]string{a, a, b}, 2, a, -1},
		"nor when that one is not the one": {[]string{a, a, b, c}, 3, a, -1},
	} {
		var s Server
		var guests []*guest
		var told []*error
		for i, host := range tt.guests {
			g, why := visit(&s, host, i != tt.silent)
			guests, told = append(guests, g), append(told, why)
		}
		g, _ := visit(&s, tt.comes, true)
		if (g == nil) != (tt.want < 0) || g != nil && !slices.Contains(s.guests, g) {
			t.Errorf("%s: %v", name, g)
		}
		for i := range guests {
			if gave := errors.Is(*told[i], errOthers); gave != (i == tt.want) ||
				gave == slices.Contains(s.guests, guests[i]) {
				t.Errorf("%s: client %d: %v", name, i, *told[i])
			}
		}
	}
}

// TestWhoIsAboutToGreet: whose place somebody gets does not have that back before he could say who
// he is; after a while he could have.
func TestWhoIsAboutToGreet(t *testing.T) {
	const a, b, c = "192.0.2.1", "192.0.2.2", "192.0.2.3"
	begun, passed := time.Now(), time.Duration(0)
	s := Server{now: func() time.Time { return begun.Add(passed) }}
	for _, host := range []string{a, b, a, b} {
		visit(&s, host, true)
	}
	third, told := visit(&s, c, false)
	if third == nil {
		t.Fatal("there is no room for a third host")
	}
	if again, _ := visit(&s, a, true); again != nil || *told != nil {
		t.Errorf("who gave way has its place back: %v", *told)
	}
	passed = greetTime
	if again, _ := visit(&s, a, true); again == nil || !errors.Is(*told, errOthers) {
		t.Errorf("silence keeps a place: %v", *told)
	}
}

// TestSilentClients: who connects and says nothing, as often as he likes, keeps nobody out.
func TestSilentClients(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	for range 3 * maxClients {
		var first hello
		if err := newLine(r.connect(t)).hear(&first, timeout.Scaled(lineTime)); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := r.dial(t).Run(t.Context(), nil); err != nil || f.PathMTU != 1024 {
		t.Errorf("%+v, %v", f, err)
	}
	// Two of them were there when the client came, and one gave way to it.
	for range 3*maxClients - maxOfAddress + 1 {
		if e := r.awaitEnd(t); !errors.Is(e.err, errOthers) {
			t.Error(e.err)
		}
	}
}

// TestServerHostile: what a client may say ends its session, soon, and no other's.
func TestServerHostile(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	for name, says := range map[string]string{
		"nothing": "", "no JSON": "hello\n", "an old version": `{"xroce_check":0}` + "\n",
		"no address":      `{"xroce_check":1,"gids":["192.0.2.1","fe80::1%eth0"]}` + "\n",
		"a group":         `{"xroce_check":1,"gids":["ff02::1"]}` + "\n",
		"too much":        strings.Repeat("x", maxLine) + "\n",
		"many addresses":  `{"xroce_check":1,"gids":["` + strings.Repeat(`::","`, 65) + "\"]}\n",
		"half a line":     `{"xroce_check":1`,
		"a negative MTU":  `{"xroce_check":1,"mtu":-1}` + "\n",
		"a second hello":  `{"xroce_check":1}` + "\n" + `{"xroce_check":1}` + "\n[]\n",
		"requests for it": `{"xroce_check":1}` + "\n" + strings.Repeat(`{"listen":22}`+"\n", 100),
	} {
		conn := r.connect(t)
		_, _ = io.WriteString(conn, says)    // it may have been refused by now,
		_ = conn.(*net.TCPConn).CloseWrite() // and the connection closed
		e := r.awaitEnd(t)
		if e.answered != 0 || e.err == nil && !strings.Contains(says, "}\n{") {
			t.Errorf("%s: %+v", name, e)
		}
		conn.Close()
	}
	if f, err := r.dial(t).Run(t.Context(), nil); err != nil || f.PathMTU != 1024 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestClientHostile: whatever is at the port, the client ends with an error.
func TestClientHostile(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	good := `{"xroce_check":1,"mtu":1500,"gids":["192.0.2.9"],"qpn":17,"qkey":5,` +
		`"secret":"00112233445566778899aabbccddeeff"}` + "\n"
	for name, says := range map[string]string{
		"nothing": "", "another protocol": "SSH-2.0-OpenSSH_9.2\r\n", "a number": "1\n",
		"no secret": `{"xroce_check":1,"qpn":17}` + "\n",
		"multicast": strings.Replace(good, "17", "16777215", 1),
		"no QPN":    strings.Replace(good, `"qpn":17`, `"qpn":0`, 1),
		"busy":      `{"error":"go \u001b[2J away"}` + "\n",
		"goes away": good, "no report": good + "?\n",
		"a flood": good + strings.Repeat(`{"got":7,"error":"\u001b[2J"}`+"\n", 1000),
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, says) // the client may be gone
			conn.Close()
		}()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := Dial(t.Context(), r.dev[0], conn)
		if err == nil {
			c.patience = time.Millisecond
			_, err = c.Run(t.Context(), []ToolPort{{Number: 1}})
			c.Close()
		}
		if err == nil || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: %v", name, err)
		}
		listener.Close()
	}
}

// TestSessionEnds: a server that is told to end does, with a client that says nothing.
func TestSessionEnds(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	client := r.dial(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestEchoIsWhole: what is sent back is as large as what came, and says the same.
func TestEchoIsWhole(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	client := r.dial(t)
	box, err := newMailbox(r.dev[0], client.server.QKey)
	if err != nil {
		t.Fatal(err)
	}
	defer box.close()
	ah := r.toServer(t, box)
	for _, size := range []int{datagramHead, datagramHead + 1, 1024} {
		head := binary.BigEndian.AppendUint32(client.secret[:], uint32(size))
		err := box.send(t.Context(), ah, client.server.QPN, client.server.QKey, head, size)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
		d, err := box.receive(ctx)
		cancel()
		if err != nil || len(d.data) != size || d.qpn != client.server.QPN ||
			string(d.data[:datagramHead]) != string(head) {
			t.Errorf("size %d: %d bytes from %#x, %v", size, len(d.data), d.qpn, err)
		}
	}
}
