package traffic

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/roce/gen"
	"xroce/roce/wire"
	"xroce/xsk"
)

// A lateLink is a link to a sink that answers the ends of a flow only at some times.
type lateLink struct {
	xsk.Link
	t       *testing.T
	to      *net.UDPConn
	answers map[int]uint64 // how much came, by the number of the end
	ends    int
	frame   [1518]byte
}

func (l *lateLink) Reserve(dst []xsk.TxFrame) int {
	dst[0].Data = l.frame[:]
	return 1
}

func (l *lateLink) Transmit(frames []xsk.TxFrame) {
	l.ends++
	came, ok := l.answers[l.ends]
	if !ok {
		return
	}
	var answer [1518]byte
	n := gen.Answer(answer[:], frames[0].Data[:frames[0].Len], gen.Account{Received: came})
	const headers = 14 + 20 + 8 // Ethernet, IPv4, UDP
	at := l.to.LocalAddr().(*net.UDPAddr).AddrPort()
	if _, err := l.to.WriteToUDPAddrPort(answer[headers:n], at); err != nil {
		l.t.Error(err)
	}
}

func (l *lateLink) Flush() error { return nil }

// TestConfirm: who has answered once, now or in an earlier run, is asked for longer, because it
// may not be scheduled; who never did is not there.
func TestConfirm(t *testing.T) {
	t.Parallel() // it waits most of the time
	for name, c := range map[string]struct {
		answers map[int]uint64
		heard   bool
		ends    int
		ok      bool
	}{
		"no sink":  {ends: tries},
		"all came": {answers: map[int]uint64{2: 5}, ends: 2, ok: true},
		"lost":     {answers: map[int]uint64{1: 3, tries + 2: 3}, ends: tries + 2, ok: true},
		"an earlier run": {
			answers: map[int]uint64{tries + 2: 5}, heard: true, ends: tries + 2, ok: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			p := SendPort{conn: conn, heard: c.heard, Route: Route{MaxFrame: 1518, Path: wire.Path{
				SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
				SrcPort: 40000, Src: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
				Dst: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
			}}}
			plan := Plan{Steps: []PlanStep{{}}, Flows: []PlanFlow{{}}}
			flows, err := plan.Make(p.Route)
			if err != nil {
				t.Fatal(err)
			}
			l := &lateLink{t: t, to: conn, answers: c.answers}
			for range 5 {
				flows[0].Next(l.frame[:], 1)
			}
			s := &Sender{
				Link: l, Flows: flows, Clock: NewSystem(false), batch: make([]xsk.TxFrame, 1),
			}
			of, ok, err := p.Confirm(t.Context(), s)
			// An answer that comes too late for one end is that to the next.
			if err != nil || ok != c.ok || l.ends < c.ends || !ok && l.ends > c.ends ||
				of.Received != c.answers[c.ends] {
				t.Errorf("%+v, %t, %v after %d ends, want %d", of, ok, err, l.ends, c.ends)
			}
		})
	}
}

// A countedLink is a link that has some frames to send.
type countedLink struct {
	xsk.Link
	frames int
}

func (l countedLink) Info() xsk.Info { return xsk.Info{TxFrames: l.frames} }

// TestQueuesTakeEqualParts: the first queue takes its part of the memory, and all others as many
// frames, of what is left then: but for one that finds less, because others have taken it.
func TestQueuesTakeEqualParts(t *testing.T) {
	const parts = 4
	for name, why := range map[string]error{
		"alone": nil, "others lock": unix.ENOBUFS, "others in the cgroup": unix.ENOMEM,
	} {
		t.Run(name, func(t *testing.T) {
			others := 0
			if why != nil {
				others = 3
			}
			left, opened := 8*parts, []int{}
			links, err := openQueues(xsk.Config{Sockets: parts}, parts,
				func(c xsk.Config) (xsk.Link, error) {
					if c.Queue != len(opened) {
						t.Errorf("queue %d is opened as the one behind %v", c.Queue, opened)
					}
					n, most := c.TxFrames, left/c.Sockets // as Open counts a cgroup
					switch {
					case n == 0:
						n = most
					case len(opened) == 2 && others > 0: // what is locked is not told
						left -= others * n / 4
						others = 0
						return nil, fmt.Errorf("too much: %w", why)
					case n > most:
						return nil, fmt.Errorf("more than there is: %w", unix.ENOMEM)
					}
					left -= n
					opened = append(opened, n)
					return countedLink{frames: n}, nil
				})
			want := []int{8, 8, 8, 8}
			if why != nil {
				want = []int{8, 8, 2, 2}
			}
			if err != nil || len(links) != parts || !slices.Equal(opened, want) {
				t.Errorf("%v, not %v: %v", opened, want, err)
			}
		})
	}
}
