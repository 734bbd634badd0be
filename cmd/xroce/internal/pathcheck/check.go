package pathcheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"xroce/cmd/xroce/internal/host"
	"xroce/cmd/xroce/internal/plain"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// A way is a kind of addresses that RoCE packets can have.
type way struct {
	name string
	ty   engine.GIDType
	fits func(wire.GID) bool
	over int // bytes of a datagram's packet, from its IP header on, beside the payload
}

// What of a datagram is not payload: IP, UDP 8, BTH 12, DETH 8 and ICRC 4. RoCE v1 has a GRH
// in the place of IPv6 and no UDP.
const (
	overIPv4 = 20 + 8 + 12 + 8 + 4
	overIPv6 = 40 + 8 + 12 + 8 + 4
	overV1   = 40 + 12 + 8 + 4
)

func ways() []way {
	global := func(g wire.GID) bool { return !g.IsIPv4() && !g.IsLinkLocal() }
	return []way{
		{"RoCE v2, IPv4", engine.GIDRoCEv2, wire.GID.IsIPv4, overIPv4},
		{"RoCE v2, IPv6", engine.GIDRoCEv2, global, overIPv6},
		{"RoCE v2, link-local", engine.GIDRoCEv2, wire.GID.IsLinkLocal, overIPv6},
		{"RoCE v1", engine.GIDRoCEv1, wire.GID.IsIPv4, overV1},
	}
}

// Result is what came of a check.
type Result struct {
	Device   string         `json:"peer_device,omitempty"`
	MTU      int            `json:"peer_mtu,omitempty"`
	There    int            `json:"largest_there,omitempty"` // bytes, from the IP header on
	Back     int            `json:"largest_back,omitempty"`
	PathMTU  int            `json:"path_mtu,omitempty"`
	Findings []host.Finding `json:"findings"`
}

func (r *Result) add(verdict host.Verdict, what, value, remedy string) {
	r.Findings = append(r.Findings, host.Finding{
		What: what, Verdict: verdict, Value: value, Remedy: remedy,
	})
}

// A ToolPort is a TCP port at which programs meet.
type ToolPort struct {
	Number int
	Tools  string // their names
}

// Run checks the way to the server and returns what was found. The error is that of a check
// that could not be ended; what was found until then is in the result.
func (c *Client) Run(ctx context.Context, ports []ToolPort) (Result, error) {
	r := Result{Device: plain.Brief(c.server.Device), MTU: c.server.MTU}
	if ours := c.dev.Port().MTU; ours != r.MTU {
		r.add(host.Note, "MTU of the ends", fmt.Sprintf("%d here, %d there", ours, r.MTU), "")
	}
	var best *found
	for _, w := range ways() {
		f, err := c.way(ctx, w, &r)
		if err != nil {
			return r, err
		}
		if f != nil && (best == nil || !best.fate.back && f.fate.back) {
			best = f
		}
	}
	if best != nil {
		if err := c.sizes(ctx, best, &r); err != nil {
			return r, err
		}
	}
	for _, port := range ports {
		if err := c.tcp(ctx, port.Number, port.Tools, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// found is a way that datagrams pass.
type found struct {
	way
	ah   *roce.AH
	fate fate
}

// way sends small datagrams by one kind of addresses. It returns nil when none came.
func (c *Client) way(ctx context.Context, w way, r *Result) (*found, error) {
	to, ok := c.vector(w)
	if !ok {
		r.add(host.Note, w.name, "not tried: one of the ends has no such address", "")
		return nil, nil
	}
	name := "to " + to.DGID.Addr().String()
	ah, err := c.box.handle(ctx, to)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, engine.ErrNoRoute):
		r.add(host.Note, w.name, "not tried: "+name+" has no route by this interface", "")
		return nil, nil
	case err != nil:
		r.add(host.Missing, w.name, name+": "+err.Error(), "is the address in the same "+
			"network, and "+
			"its host up? 'ip neighbour show' and 'ip route get "+to.DGID.Addr().String()+"' "+
			"tell")
		return nil, nil
	}
	c.complain = ""
	f, err := c.try(ctx, ah, smallDatagram, true)
	if err != nil {
		return nil, err
	}
	switch {
	case f.there && f.back:
		r.add(host.Good, w.name, name+": both ways", "")
	case f.there:
		r.add(host.Missing, w.name, name+": there, and not "+
			"back"+said(c.complain), lostRemedy("here"))
	default:
		r.add(host.Missing, w.name, name+": does not come", lostRemedy("there"))
		return nil, nil
	}
	return &found{w, ah, f}, nil
}

// said is what the server complained of, in words that follow others.
func said(complaint string) string {
	if complaint == "" {
		return ""
	}
	return "; the server says: " + plain.Brief(complaint)
}

// lostRemedy says where to look when packets are lost that are small.
func lostRemedy(where string) string {
	return "a firewall that drops UDP port 4791, or packets that come in on a queue that is " +
		"not " +
		"ours: run 'xroce check IFACE' " + where
}

// vector chooses a pair of addresses.
func (c *Client) vector(w way) (engine.AddressVector, bool) {
	for _, g := range c.targets() {
		if !w.fits(g) {
			continue
		}
		index, err := c.dev.SourceGID(g.Addr())
		if err != nil {
			continue
		}
		from, err := c.dev.QueryGID(index)
		if err != nil {
			continue
		}
		for _, e := range c.dev.GIDTable() {
			if e.GID == from.GID && e.VLAN == from.VLAN && e.Type == w.ty {
				return engine.AddressVector{DGID: g, SGIDIndex: e.Index}, true
			}
		}
	}
	return engine.AddressVector{}, false
}

// targets are the server's addresses, the one that TCP is connected to first.
func (c *Client) targets() []wire.GID {
	list := c.gids
	if a, err := netip.ParseAddrPort(c.line.conn.RemoteAddr().String()); err == nil {
		first := wire.GIDFromAddr(a.Addr().WithZone(""))
		for _, g := range list {
			if g == first {
				return append([]wire.GID{g}, list...)
			}
		}
	}
	return list
}

// sizes looks for the largest packets that pass, and says which path MTU to use.
func (c *Client) sizes(ctx context.Context, f *found, r *Result) error {
	most := min(c.dev.ActiveMTU(), wire.ActiveMTU(c.server.MTU)).Bytes()
	if most <= smallDatagram {
		return nil
	}
	there, err := c.largest(ctx, f.ah, smallDatagram, most, f.fate.back, func(f fate) bool {
		return f.there
	})
	if err != nil {
		return err
	}
	r.There = there + f.over
	c.judgeSize(r, "largest packet there", r.There, there == most)
	back := there
	if f.fate.back {
		back, err = c.largest(ctx, f.ah, smallDatagram, there, true, func(f fate) bool {
			return f.back
		})
		if err != nil {
			return err
		}
		r.Back = back + f.over
		if there < most && back == there {
			r.add(host.Good, "largest packet back", fmt.Sprintf("%d bytes, as large as what came "+
				"there", r.Back), "")
		} else {
			c.judgeSize(r, "largest packet back", r.Back, back == most)
		}
	}
	use := min(c.dev.ActiveMTU(), wire.ActiveMTU(c.server.MTU))
	if least := min(there, back); least < most {
		use = wire.ActiveMTU(least + f.over)
	}
	r.PathMTU = use.Bytes()
	if use == 0 {
		r.add(host.Missing, "path MTU to use", "none: packets of the smallest are lost", "")
		return nil
	}
	r.add(host.Good, "path MTU to use", fmt.Sprintf("%d, as with -m "+
		"%d", use.Bytes(), use.Bytes()), "")
	return nil
}

// judgeSize tells how large packets may be one way, and whether that is all that the ends can.
func (c *Client) judgeSize(r *Result, what string, size int, all bool) {
	if all {
		r.add(host.Good, what, fmt.Sprintf("%d bytes, as large as they get", size), "")
		return
	}
	r.add(host.Warning, what, fmt.Sprintf("%d bytes, though the MTU is %d here and %d there: "+
		"larger ones are lost without a word", size, c.dev.Port().MTU, c.server.MTU),
		"something in between, a switch or a bridge, has a smaller MTU: raise it, or use the "+
			"path MTU below")
}

// connectTime is how long a connection to a TCP port is tried for.
const connectTime = 3 * time.Second

// tcp tries a TCP port of the tools.
func (c *Client) tcp(ctx context.Context, port int, tools string, r *Result) error {
	what := fmt.Sprintf("TCP port %d", port)
	answer, err := c.listensAt(ctx, port)
	if err != nil {
		return err
	}
	if answer.Error != "" {
		r.add(host.Note, what, "not tried: "+plain.Brief(answer.Error), "")
		return nil
	}
	remote, _, err := net.SplitHostPort(c.line.conn.RemoteAddr().String())
	if err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: connectTime}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(remote, strconv.Itoa(port)))
	if err != nil {
		r.add(host.Missing, what, fmt.Sprintf("%s: %v", tools, err),
			"a firewall there drops it: let it through, or choose a port with -p")
		return ctx.Err()
	}
	conn.Close()
	r.add(host.Good, what, "open: "+tools, "")
	return nil
}
