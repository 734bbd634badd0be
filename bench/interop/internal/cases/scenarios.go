package cases

// scenarios are the dialogues that are compared: tools that wait for each message
// before they send the next, so that time does not choose the order. Those of one
// MTU are together: changing it takes time.
func scenarios() []Case {
	var cases []Case
	for _, group := range []struct {
		mtu, family int
		cases       []Case
	}{
		{1024, 4, []Case{
			{Tool: "ibv_rc_pingpong", Transport: "RC", Size: 5000},
			{Tool: "ibv_uc_pingpong", Transport: "UC", Size: 5000},
			{Tool: "ibv_ud_pingpong", Transport: "UD", Size: 101},
			{Tool: "ib_send_lat", Transport: "RC", Size: 5000},
			{Tool: "ib_write_lat", Transport: "RC", Size: 5000},
			{Tool: "ib_read_lat", Transport: "RC", Size: 5000},
			{Tool: "ib_atomic_lat", Transport: "RC"},
			{Tool: "ib_send_lat", Transport: "RC", CM: true, Size: 5000},
			{Tool: "rping", Transport: "RC", CM: true, Size: 101},
			{Tool: "ucmatose", Transport: "RC", CM: true, Size: 3000},
			{Tool: "udaddy", Transport: "UD", CM: true, Size: 101},
			{Tool: "rdma_client", Transport: "RC", CM: true},
			{Tool: "rping", Transport: "RC", CM: true, Size: 101, Fault: Refused},
			{Tool: "udaddy", Transport: "UD", CM: true, Size: 101, Fault: Refused},
		}},
		{1024, 6, []Case{{Tool: "rping", Transport: "RC", CM: true, Size: 101}}},
		{4096, 4, []Case{{Tool: "ib_write_lat", Transport: "RC", Size: 9000}}},
		{4096, 6, []Case{
			{Tool: "ibv_rc_pingpong", Transport: "RC", Size: 9000},
			{Tool: "ibv_ud_pingpong", Transport: "UD", Size: 3001},
			{Tool: "ib_read_lat", Transport: "RC", Size: 9000},
			{Tool: "ucmatose", Transport: "RC", CM: true, Size: 9000},
			{Tool: "udaddy", Transport: "UD", CM: true, Size: 3001},
			{Tool: "rping", Transport: "RC", CM: true, Size: 101, Fault: Refused},
		}},
	} {
		for _, c := range group.cases {
			c.MTU, c.Family, c.Trace = group.mtu, group.family, true
			for _, c.Role = range roles {
				cases = append(cases, c)
			}
		}
	}
	return cases
}
