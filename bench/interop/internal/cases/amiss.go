package cases

// Fails reports whether xroce must end with an error and without a result: the ends were
// told different things, or the cable is cut.
func (f Fault) Fails() bool { return f == Larger || f == Fewer || f == Cut }

// rounds is how many messages an end of perftest is told of.
func (e ending) rounds() int {
	if e.Fault == Fewer && !e.serves {
		return rounds(e.Case) / 2
	}
	return rounds(e.Case)
}

// amiss is an end of perftest that is told what the fault has it told.
func (e ending) amiss() ending {
	if e.Fault == Larger && !e.serves {
		e.Size *= 4
	}
	return e
}

// amissSize is a size of messages in bytes that has larger ones refused: it fills the
// memory of an end, whose smallest is a page.
const amissSize = 1 << 13

// ailing are the cases that xroce has to fail in, with a reason and in time.
func ailing() []Case {
	var cases []Case
	for _, role := range roles {
		c := Case{Role: role, Transport: "RC", MTU: 4096, Family: 4, Size: amissSize}
		for _, c.Tool = range []string{"ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_read_bw"} {
			c.Fault = Larger
			cases = append(cases, c)
			// Retries of ours run out. Soft-RoCE takes the 7 of the tools for no end of them,
			// so who waits for it alone waits for two minutes.
			if c.Fault = Cut; role == TheyServe && c.Tool != "ib_send_lat" {
				cases = append(cases, c)
			}
		}
		c.Tool, c.Flags, c.Fault = "ib_read_bw", []string{"-q", "16", "-b"}, Cut
		cases = append(cases, c)
	}
	// A server of theirs that was told of fewer waits for its client's next word, and
	// that for an answer, as two of theirs do.
	for _, tool := range []string{"ib_send_bw", "ib_send_lat"} {
		cases = append(cases, Case{
			Tool: tool, Role: WeServe, Transport: "RC", MTU: 4096, Family: 4, Size: amissSize,
			Fault: Fewer,
		})
	}
	return cases
}

// crowds are the cases of many queue pairs in both directions.
func crowds() []Case {
	var cases []Case
	for _, role := range roles {
		for _, tool := range []string{"ib_send_bw", "ib_write_bw", "ib_read_bw"} {
			cases = append(cases, Case{
				Tool: tool, Role: role, Transport: "RC", MTU: 4096, Family: 4, Size: 4096,
				Flags: []string{"-q", "16", "-b"},
			})
		}
	}
	return cases
}
