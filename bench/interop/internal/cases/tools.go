package cases

import (
	"slices"
	"strconv"
	"strings"
)

// tools are all of them, in the order of the table.
var tools = []Tool{
	pingpong("rc", "RC"), pingpong("uc", "UC"), pingpong("ud", "UD"), pingpong("srq", "RC"),
	perftest("send_bw"), perftest("send_lat"), perftest("write_bw"), perftest("write_lat"),
	perftest("read_bw"), perftest("read_lat"), perftest("atomic_bw"), perftest("atomic_lat"),
	rping(), cmTest("ucmatose", "RC"), cmTest("udaddy", "UD"), rdmaClient(), message,
}

// pingpong is one of the examples of rdma-core.
func pingpong(kind, transport string) Tool {
	return Tool{
		Name: "ibv_" + kind + "_pingpong", transport: transport,
		command: []string{"pingpong"},
		args: func(e ending) []string {
			args := []string{
				"-d", e.device, "-g", strconv.Itoa(e.gid), "-c",
				"-s", strconv.Itoa(e.Size), "-n", strconv.Itoa(rounds(e.Case)),
			}
			if e.ours {
				args = append(args, "--type", kind)
			}
			if e.ours && transport == "RC" { // theirs waits for 67 ms, whatever one says
				args = append(args, "-u", strconv.Itoa(ackTimeout(e.Case)))
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
func perftest(test string) Tool {
	return Tool{
		Name: "ib_" + test, transport: "RC",
		command: []string{"perf", strings.ReplaceAll(test, "_", "-")},
		args: func(e ending) []string {
			e = e.amiss()
			args := []string{
				"-d", e.device, "-x", strconv.Itoa(e.gid), "-n", strconv.Itoa(e.rounds()), "-F",
			}
			if e.Size > 0 {
				args = append(args, "-s", strconv.Itoa(e.Size))
			}
			args = append(args, "-u", strconv.Itoa(ackTimeout(e.Case)))
			if e.Transport != "RC" {
				args = append(args, "-c", e.Transport)
			}
			if e.CM {
				args = append(args, "-R")
			}
			args = append(args, e.Flags...)
			if e.Fault.Resets() && e.ours && e.serves {
				args = append(args, "--reattach", "--json") // which has the counters
			}
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
func rping() Tool {
	return Tool{
		Name: "rping", transport: "RC", CM: true, command: []string{"rping"},
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
func cmTest(name, transport string) Tool {
	return Tool{
		Name: name, transport: transport, CM: true, command: []string{name},
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
func rdmaClient() Tool {
	return Tool{
		Name: "rdma_client", server: "rdma_server", transport: "RC", CM: true,
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

// message is a test of ours, which others do not have: messages there and back, every byte
// compared.
var message = Tool{
	Name: "msg_pingpong", transport: "RC", CM: true, command: []string{"msg", "pingpong"},
	args: func(e ending) []string {
		args := []string{
			"-n", strconv.Itoa(rounds(e.Case)), "--warmup", "2", "--size", strconv.Itoa(e.Size),
		}
		if !e.serves {
			args = append(args, e.peer)
		}
		return args
	},
	good: "usec",
}

// elsewhere is a server on a port to which no tool goes. With it a host has a
// connection manager that answers, and nobody who listens.
var elsewhere = Tool{
	Name: "rping", CM: true, command: []string{"rping"},
	args: func(e ending) []string { return append(rping().args(e), "-p", "7175") },
}

// ToolOf finds a tool by its name. All that Plan makes are there.
func ToolOf(name string) *Tool {
	if i := ToolIndex(name); i >= 0 {
		return &tools[i]
	}
	return nil
}

// ToolIndex is the place of a tool in the order of the table, -1 for none.
func ToolIndex(name string) int {
	return slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
}
