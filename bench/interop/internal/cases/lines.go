package cases

import (
	"net/netip"
	"slices"
	"strings"

	"xroce/bench/softroce"
)

// Lines makes the two command lines of a case: the arguments of xroce, and a
// shell command.
func (t *Tool) Lines(c Case) (our []string, their string) {
	return t.linesFor(c, OurAddrs, TheirAddrs)
}

// linesFor is Lines for other addresses of the two ends.
func (t *Tool) linesFor(
	c Case, ourAddrs, theirAddrs []netip.Prefix,
) (our []string, their string) {
	us := ending{Case: c, ours: true, serves: c.Role == WeServe, device: softroce.TapName}
	them := ending{Case: c, serves: !us.serves, device: softroce.Device}
	us.self, us.gid = address(ourAddrs, c.Family)
	them.self, them.gid = address(theirAddrs, c.Family)
	us.peer, them.peer = them.self, us.self
	us.peer4, _ = address(theirAddrs, 4)
	them.peer4, _ = address(ourAddrs, 4)
	ours, theirs := t, t
	if c.Fault == Refused {
		ours, theirs = serveElsewhere(t, c.Role)
	}
	our = ours.ownLine(us)
	if c.Self {
		them.ours, them.device = true, us.device
		return our, "exec xroce " + strings.Join(ours.ownLine(them), " ")
	}
	_, program := theirs.Names(c.Role)
	if c.Multicast() {
		program = "exec agent member " + softroce.Interface + " " + group + " " + program
	}
	return our, program + " " + strings.Join(theirs.args(them), " ")
}

// ownLine are the arguments of xroce at an end.
func (t *Tool) ownLine(e ending) []string {
	role := TheyServe
	if e.serves {
		role = WeServe
	}
	command, _ := t.Names(role)
	line := append([]string{}, command...)
	if t.CM {
		line = append(line, "-d", e.device) // the originals go by the route
	}
	line = append(append(line, CardArgs(e.Case)...), t.args(e)...)
	if e.serves && !slices.Contains(line, "-v") {
		line = append(line, "-v") // says when it listens
	}
	return line
}

// Reference makes the command lines of a case between two VMs, of which the one in
// our place has our addresses.
func (t *Tool) Reference(c Case) (serve, call string) {
	swapped := c
	swapped.Role = map[Role]Role{WeServe: TheyServe, TheyServe: WeServe}[c.Role]
	_, theirs := t.Lines(c)
	_, ours := t.linesFor(swapped, TheirAddrs, OurAddrs)
	if c.Role == WeServe {
		return ours, theirs
	}
	return theirs, ours
}

// serveElsewhere are the tools of both ends when nobody listens where the client
// goes.
func serveElsewhere(t *Tool, r Role) (ours, theirs *Tool) {
	if r == WeServe {
		return &elsewhere, t
	}
	return t, &elsewhere
}
