package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"xroce/bench/softroce"
)

// A tool is a program in the VM with its counterpart of ours.
type tool struct {
	name      string
	server    string   // the program that serves, "" when it is the same
	transport string   // when a case does not say another
	cm        bool     // it is connected by rdma_cm, always
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

// toolOf finds a tool by its name. All that plan makes are there.
func toolOf(name string) *tool {
	for i := range tools {
		if tools[i].name == name {
			return &tools[i]
		}
	}
	return nil
}

// needs is the flag without which the command of xroce cannot play a case, ""
// for none.
func (t *tool) needs(c Case) string {
	if c.CM && !t.cm {
		return "--rdma_cm"
	}
	return ""
}

// names are the command of xroce and the program in the VM that a role needs.
func (t *tool) names(r Role) (our []string, their string) {
	our, their = t.command, t.name
	if r == weServe && t.serverCommand != nil {
		our = t.serverCommand
	}
	if r == theyServe && t.server != "" {
		their = t.server
	}
	return our, their
}

// lines makes the two command lines of a case: the arguments of xroce, and a
// shell command.
func (t *tool) lines(c Case) (our []string, their string) {
	return t.linesFor(c, ourAddrs, theirAddrs)
}

// linesFor is lines for other addresses of the two ends.
func (t *tool) linesFor(
	c Case, ourAddrs, theirAddrs []netip.Prefix,
) (our []string, their string) {
	us := ending{Case: c, ours: true, serves: c.Role == weServe, device: softroce.TapName}
	them := ending{Case: c, serves: !us.serves, device: softroce.Device}
	us.self, us.gid = address(ourAddrs, c.Family)
	them.self, them.gid = address(theirAddrs, c.Family)
	us.peer, them.peer = them.self, us.self
	us.peer4, _ = address(theirAddrs, 4)
	them.peer4, _ = address(ourAddrs, 4)
	ours, theirs := t, t
	if c.Fault == refused {
		ours, theirs = serveElsewhere(t, c.Role)
	}
	command, _ := ours.names(c.Role)
	_, program := theirs.names(c.Role)
	our = append([]string{}, command...)
	if t.cm {
		our = append(our, "-d", us.device) // the originals go by the route
	}
	our = append(our, ours.args(us)...)
	if us.serves && !slices.Contains(our, "-v") {
		our = append(our, "-v") // says when it listens
	}
	return our, program + " " + strings.Join(theirs.args(them), " ")
}

// reference makes the command lines of a case between two VMs, of which the one in
// our place has our addresses.
func (t *tool) reference(c Case) (serve, call string) {
	swapped := c
	swapped.Role = map[Role]Role{weServe: theyServe, theyServe: weServe}[c.Role]
	_, theirs := t.lines(c)
	_, ours := t.linesFor(swapped, theirAddrs, ourAddrs)
	if c.Role == weServe {
		return ours, theirs
	}
	return theirs, ours
}

// complaint says what is wrong with what a program printed, "" for nothing.
func (t *tool) complaint(who, output string, client bool) string {
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

// dumps reports whether the command of xroce can show the memory it worked on. The
// others compare what they receive themselves, or have no room of their own for it.
func (t *tool) dumps() bool { return t.command[0] == "perf" }

// theirLack says why the peer's program cannot do a case, "" when it can.
func (t *tool) theirLack(c Case) string {
	if strings.HasPrefix(t.name, "ib_") && c.CM && c.Family == 6 {
		// It resolves and listens with AF_INET whatever the address is, and says
		// "Address family for hostname not supported".
		return "perftest 4.5 has rdma_cm over IPv4 alone"
	}
	return ""
}

// tools are all of them, in the order of the table.
var tools = []tool{
	pingpong("rc", "RC"), pingpong("uc", "UC"), pingpong("ud", "UD"), pingpong("srq", "RC"),
	perftest("send_bw"), perftest("send_lat"), perftest("write_bw"), perftest("write_lat"),
	perftest("read_bw"), perftest("read_lat"), perftest("atomic_bw"), perftest("atomic_lat"),
	rping(), cmTest("ucmatose", "RC"), cmTest("udaddy", "UD"), rdmaClient(),
}

// pingpong is one of the examples of rdma-core.
func pingpong(kind, transport string) tool {
	return tool{
		name: "ibv_" + kind + "_pingpong", transport: transport,
		command: []string{"pingpong"},
		args: func(e ending) []string {
			args := []string{
				"-d", e.device, "-g", strconv.Itoa(e.gid), "-c",
				"-s", strconv.Itoa(e.Size), "-n", strconv.Itoa(rounds(e.Case)),
			}
			if e.ours {
				args = append(args, "--type", kind)
			}
			if kind != "ud" {
				args = append(args, "-m", strconv.Itoa(e.MTU))
			}
			args = append(args, e.Flags...)
			if !e.serves {
				// Their server listens on IPv4 only, whatever the GIDs are. In a trace
				// it is the peer of their client as well.
				host := e.peer
				if e.ours || e.Trace {
					host = e.peer4
				}
				args = append(args, host)
			}
			return args
		},
		bad: []string{"invalid data"}, good: "usec/iter",
	}
}

// perftest is one of the programs of perftest, whose flags are ours as well.
func perftest(test string) tool {
	return tool{
		name: "ib_" + test, transport: "RC",
		command: []string{"perf", strings.ReplaceAll(test, "_", "-")},
		args: func(e ending) []string {
			args := []string{
				"-d", e.device, "-x", strconv.Itoa(e.gid), "-n", strconv.Itoa(rounds(e.Case)), "-F",
			}
			if e.Size > 0 {
				args = append(args, "-s", strconv.Itoa(e.Size))
			}
			if e.Fault == noFault {
				// Half a second: an emulated host that has to share its processor is
				// late for the usual 67 ms, and what is sent again makes it later.
				args = append(args, "-u", "17")
			}
			if e.Transport != "RC" {
				args = append(args, "-c", e.Transport)
			}
			if e.CM {
				args = append(args, "-R")
			}
			args = append(args, e.Flags...)
			switch {
			case e.serves:
			case e.CM:
				args = append(args, e.peer)
			default:
				args = append(args, e.peer4) // the exchange over TCP is IPv4
			}
			return args
		},
		good: "#iterations",
	}
}

// rping is the program of that name: RDMA READ and WRITE of lines of text, which
// it compares.
func rping() tool {
	return tool{
		name: "rping", transport: "RC", cm: true, command: []string{"rping"},
		args: func(e ending) []string {
			role, addr := "-c", e.peer
			if e.serves {
				role, addr = "-s", e.self
			}
			return append([]string{
				role, "-a", addr, "-V", "-v", "-S", strconv.Itoa(e.Size),
				"-C", strconv.Itoa(pings(e.Case)),
			}, e.Flags...)
		},
		bad: []string{"data mismatch", "verify error"}, good: "ping data",
	}
}

// cmTest is ucmatose or udaddy.
func cmTest(name, transport string) tool {
	return tool{
		name: name, transport: transport, cm: true, command: []string{name},
		args: func(e ending) []string {
			count := strconv.Itoa(pings(e.Case))
			args := []string{"-C", count, "-S", strconv.Itoa(e.Size)}
			if e.serves {
				return append(args, "-b", e.self)
			}
			return append(args, "-s", e.peer)
		},
		good: "return status 0",
	}
}

// rdmaClient is rdma_client with its server rdma_server.
func rdmaClient() tool {
	return tool{
		name: "rdma_client", server: "rdma_server", transport: "RC", cm: true,
		command: []string{"rdma-client"}, serverCommand: []string{"rdma-server"},
		args: func(e ending) []string {
			if e.serves {
				return []string{"-s", e.self}
			}
			return []string{"-s", e.peer}
		},
		good: "end 0",
	}
}

// pings is rounds for the programs of rdma_cm, which wait for each.
func pings(c Case) int {
	if c.Fault == loss {
		return rounds(c)
	}
	return min(rounds(c), 20)
}

// rounds is how many messages go each way: few of the large ones.
func rounds(c Case) int {
	switch {
	case c.Trace:
		return 5
	case c.Fault == loss && c.Size == 0:
		return 1000 // packets enough to lose some
	case c.Fault == loss:
		return 100
	case c.Size >= 1<<20:
		return 10
	case c.Size >= 1<<16:
		return 50
	case strings.HasPrefix(c.Tool, "ib_") && strings.HasSuffix(c.Tool, "_lat"):
		// They spin while they wait, on the only processor of the VM, so each message
		// waits for the scheduler there.
		return 50
	}
	return 200
}
