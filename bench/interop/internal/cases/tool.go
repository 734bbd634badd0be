package cases

import (
	"fmt"
	"strings"
)

// A Tool is a program in the VM with its counterpart of ours.
type Tool struct {
	Name      string
	server    string   // the program that serves, "" when it is the same
	transport string   // when a case does not say another
	CM        bool     // it is connected by rdma_cm, always
	command   []string // of xroce
	// serverCommand is that of the server, nil when it is the same.
	serverCommand []string
	// args are the arguments of either program, without what says where the
	// other end is.
	args func(e ending) []string
	// bad are texts that a program prints when it found wrong data; the originals
	// then do not fail.
	bad []string
	// good is what the client must have printed.
	good string
}

// Needs is the flag without which the command of xroce cannot play a case, ""
// for none.
func (t *Tool) Needs(c Case) string {
	if c.CM && !t.CM {
		return "--rdma_cm"
	}
	return ""
}

// Names are the command of xroce and the program in the VM that a role needs.
func (t *Tool) Names(r Role) (our []string, their string) {
	our, their = t.command, t.Name
	if r == WeServe && t.serverCommand != nil {
		our = t.serverCommand
	}
	if r == TheyServe && t.server != "" {
		their = t.server
	}
	return our, their
}

// Complaint says what is wrong with what a program printed, "" for nothing.
func (t *Tool) Complaint(who, output string, client bool) string {
	for _, text := range t.bad {
		if strings.Contains(output, text) {
			return fmt.Sprintf("%s says %q", who, text)
		}
	}
	if client && !strings.Contains(output, t.good) {
		return fmt.Sprintf("%s does not say %q", who, t.good)
	}
	return ""
}

// Dumps reports whether the command of xroce can show the memory that it worked on in a case. The
// others compare what they receive themselves, or have no room of their own for it; of a group
// there is no telling whose is what.
func (t *Tool) Dumps(c Case) bool { return t.command[0] == "perf" && !c.Multicast() }

// TheirLack says why the peer's program cannot do a case, "" when it can.
func (t *Tool) TheirLack(c Case) string {
	if strings.HasPrefix(t.Name, "ib_") && c.CM && c.Family == 6 {
		// It resolves and listens with AF_INET whatever the address is, and says
		// "Address family for hostname not supported".
		return "perftest 4.5 has rdma_cm over IPv4 alone"
	}
	return ""
}

// An ending is one end of a case, for which a command line is made.
type ending struct {
	Case
	ours   bool
	serves bool
	device string
	gid    int    // index of our GID
	self   string // our address
	peer   string // that of the other end
	peer4  string // the same of IPv4
}
