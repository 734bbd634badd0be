package cases

// The path MTUs and address families that each tool is met over.
var (
	pathMTUs = []int{1024, 4096}
	families = []int{4, 6}
)

// Plan lists all cases: those of xroce in a namespace, and then those in a VM, by card.
func Plan() []Case { return append(inNamespace(), onCards()...) }

// inNamespace are those of one MTU together: changing it takes time.
func inNamespace() []Case {
	var cases []Case
	for _, mtu := range pathMTUs {
		for _, family := range families {
			cases = append(cases, pingpongs(mtu, family)...)
			cases = append(cases, perftests(mtu, family)...)
			cases = append(cases, connections(mtu, family)...)
		}
	}
	cases = append(append(append(cases, exchanges()...), multicasts()...), crowds()...)
	cases = append(cases, faults()...)
	return append(append(cases, ailing()...), scenarios()...)
}

// pingpongs are the cases of the examples of rdma-core.
func pingpongs(mtu, family int) []Case {
	var cases []Case
	for _, t := range []struct {
		name, transport string
		sizes           []int
		flags           []string // of one case more, of the largest size
	}{
		{"ibv_rc_pingpong", "RC", []int{1, 4096, 1 << 20}, []string{"-e"}},
		{"ibv_uc_pingpong", "UC", []int{1, 4096, 1 << 16}, nil},
		{"ibv_ud_pingpong", "UD", []int{1, mtu}, nil},
		{"ibv_srq_pingpong", "RC", []int{1, 4096, 1 << 14}, nil},
	} {
		for _, role := range roles {
			c := Case{
				Tool: t.name, Role: role, Transport: t.transport, MTU: mtu, Family: family,
			}
			for _, c.Size = range t.sizes {
				if t.name == "ibv_srq_pingpong" && c.Size > 4096 {
					// An emulated host takes longer for that much of sixteen QPs than
					// they wait for an acknowledgement.
					c.Flags = []string{"-q", "4"}
				}
				cases = append(cases, c)
			}
			if t.flags != nil {
				c.Flags = t.flags
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// perfSizes are the sizes of messages, in bytes.
var perfSizes = []int{1, 4096, 1 << 16, 1 << 20}

// perftests are the cases of perftest, connected by its own exchange and by
// rdma_cm.
func perftests(mtu, family int) []Case {
	var cases []Case
	for _, cm := range []bool{false, true} {
		for _, role := range roles {
			c := Case{Role: role, Transport: "RC", CM: cm, MTU: mtu, Family: family}
			for _, c.Tool = range []string{
				"ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat",
				"ib_read_bw", "ib_read_lat",
			} {
				sizes := perfSizes
				if cm && family == 6 {
					sizes = sizes[:1] // perftest cannot do it: to say so once is enough
				}
				for _, c.Size = range sizes {
					cases = append(cases, c)
				}
			}
			c.Size = 0
			for _, c.Tool = range []string{"ib_atomic_bw", "ib_atomic_lat"} {
				for _, operation := range []string{"FETCH_AND_ADD", "CMP_AND_SWAP"} {
					c.Flags = []string{"-A", operation}
					cases = append(cases, c)
				}
			}
		}
	}
	for _, role := range roles {
		for _, t := range []struct{ tool, transport string }{
			{"ib_send_lat", "UC"}, {"ib_send_lat", "UD"}, {"ib_write_lat", "UC"},
		} {
			cases = append(cases, Case{
				Tool: t.tool, Role: role, Transport: t.transport, MTU: mtu, Family: family,
				Size: 1000,
			})
		}
	}
	return cases
}

// exchanges are the cases of perftest whose exchange alone is over rdma_cm.
func exchanges() []Case {
	var cases []Case
	for _, role := range roles {
		c := Case{
			Role: role, Transport: "RC", MTU: 4096, Family: 4, Size: 4096,
			Flags: []string{exchangeByCM},
		}
		for _, c.Tool = range []string{
			"ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_lat",
		} {
			cases = append(cases, c)
		}
		c.Tool, c.Transport = "ib_send_lat", "UC"
		cases = append(cases, c)
	}
	return cases
}

// multicasts are the cases of datagrams to a multicast group. A receiver is a member of it.
func multicasts() []Case {
	var cases []Case
	for _, role := range roles {
		for _, tool := range []string{"ib_send_bw", "ib_send_lat"} {
			cases = append(cases, Case{
				Tool: tool, Role: role, Transport: "UD", MTU: 4096, Family: 4, Size: 1024,
				Flags: []string{"-M", groupAsTold, "-g"},
			})
		}
	}
	return cases
}

// connections are the cases of the programs that show rdma_cm.
func connections(mtu, family int) []Case {
	var cases []Case
	for _, t := range []struct {
		name, transport string
		size            int
	}{
		{"rping", "RC", 100},
		{"rping", "RC", 60000},
		{"ucmatose", "RC", 1000},
		{"udaddy", "UD", 1000},
		{"rdma_client", "RC", 0},
	} {
		for _, role := range roles {
			cases = append(cases, Case{
				Tool: t.name, Role: role, Transport: t.transport, CM: true, MTU: mtu,
				Family: family, Size: t.size,
			})
		}
	}
	return cases
}

// faults are the cases in which something goes wrong, over IPv4 and the larger
// MTU.
func faults() []Case {
	var cases []Case
	for _, role := range roles {
		c := Case{
			Role: role, Transport: "RC", MTU: 4096, Family: 4, Size: 1 << 16, Fault: Loss,
		}
		for _, c.Tool = range []string{
			"ibv_rc_pingpong", "ibv_srq_pingpong", "ib_send_bw", "ib_write_bw", "ib_read_bw",
			"ib_read_lat",
		} {
			c.Flags = nil
			if c.Tool == "ibv_srq_pingpong" {
				c.Flags = []string{"-q", "4"}
			}
			cases = append(cases, c)
		}
		c.Tool, c.Size = "ib_atomic_bw", 0
		cases = append(cases, c)
		c.Tool, c.Size, c.CM = "rping", 60000, true
		cases = append(cases, c)
	}
	for _, role := range roles {
		cases = append(cases, Case{
			Tool: "ibv_rc_pingpong", Role: role, Transport: "RC", MTU: 4096, Family: 4,
			Size: 1 << 20, Fault: Restart,
		})
	}
	return cases
}
