package cases

import (
	"fmt"
	"strings"

	"xroce/bench/softroce"
)

// Resets reports whether the fault is what a card is told in the middle of a transfer.
func (f Fault) Resets() bool {
	switch f {
	case Rings, Channels, Resized, Down, Detached:
		return true
	}
	return false
}

// resetFaults are all of them.
var resetFaults = []Fault{Rings, Channels, Resized, Down, Detached}

// reset is the case of a fault: data in both directions while it happens.
func reset(card string, mtu int, f Fault) Case {
	return Case{
		Tool: "ib_send_bw", Role: WeServe, Transport: "RC", MTU: mtu, Family: 4, Size: 1 << 16,
		Flags: []string{"-b"}, Card: card, Fault: f,
	}
}

// resets are the cases of a card that is reset while it is used.
func resets(card string, mtus ...int) []Case {
	var list []Case
	for _, mtu := range mtus {
		for _, f := range resetFaults {
			list = append(list, reset(card, mtu, f))
		}
	}
	if card == CardZeroCopy {
		// There, and only with the program in generic mode, the driver gives queues and takes
		// them while the program is attached.
		c := reset(card, mtus[0], Channels)
		c.Generic = true
		list = append(list, c)
	}
	return list
}

// selfResets are some of them with xroce at the other end, whose retries have an end.
func selfResets(card string) []Case {
	var list []Case
	for _, f := range []Fault{Rings, Down, Detached} {
		c := reset(card, 1024, f)
		c.Self = true
		list = append(list, c)
	}
	return list
}

// How a line of a script's output begins that names a command which was refused.
const refusedMark = "refused: "

// ResetScript is what a shell in the VM of xroce is told before the program starts, in the middle
// of the transfer, and when all is over. What is refused is a line of its output, see Refusals.
func ResetScript(c Case) (before, middle, after string) {
	const head = `try() { said=$("$@" 2>&1) || echo "` + refusedMark + `$*: $(echo $said)"; }
`
	channels := func(n int) string {
		return fmt.Sprintf("try ethtool -L %s combined %d\n", softroce.TapName, n)
	}
	link := "try /usr/bin/ip link set " + softroce.TapName
	full := InterfaceMTU(c.MTU)
	switch c.Fault {
	case Rings:
		const rings = "try ethtool -G " + softroce.TapName
		middle = rings + " rx 128 tx 128\nsleep 0.5\n" + rings + " rx 256 tx 256\n"
	case Channels:
		if c.Generic {
			before, after = channels(1), channels(CardQueues(c))
		}
		middle = channels(2) + "sleep 2\n" + channels(1)
	case Resized:
		less := map[int]int{1500: 1300, 4200: 1500}[full]
		middle = fmt.Sprintf("%s mtu %d\nsleep 0.5\n%[1]s mtu %[3]d\n", link, less, full)
	case Down:
		middle = link + " down\nsleep 1\n" + link + " up\n"
	case Detached:
		middle = `id=$(bpftool link | sed -n 's/^\([0-9]*\): xdp .*/\1/p')` +
			"\ntry bpftool link detach id $id\nsleep 0.5\n"
	}
	return head + before, head + middle, head + after
}

// Refusals are the commands that were refused, with what was said, of the output of a script.
func Refusals(output string) []string {
	var list []string
	for line := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), refusedMark); ok {
			list = append(list, text)
		}
	}
	return list
}

// CardLack says why a card cannot do a case, "" when it can.
func CardLack(c Case) string {
	anew := c.Fault == Rings || c.Fault == Resized || c.Fault == Down
	if c.Card == "vmxnet3" && anew {
		// ethtool -S counts frames as received, and not as given to the program. Why is not known.
		return "vmxnet3 of Linux 7.3 on QEMU 7.2 makes its queues anew, and under load nothing " +
			"comes to the program then; xroce ends with 'the peer does not answer any more'"
	}
	return ""
}

// mayRefuse reports whether a driver is known to refuse what a case does.
func mayRefuse(c Case) bool { return c.Fault == Channels }

// ResetFault says what is wrong with the counters of xroce after a reset, and with what was
// refused, "" for nothing.
func ResetFault(c Case, refused []string, counters map[string]uint64) string {
	if len(refused) > 0 {
		if mayRefuse(c) {
			return ""
		}
		return "refused: " + strings.Join(refused, "; ")
	}
	for name, least := range map[Fault]map[string]uint64{
		Resized:  {"mtu_changes": 2},
		Down:     {"link_downed": 1},
		Detached: {"xdp_detached": 1, "xdp_reattached": 1},
	}[c.Fault] {
		if counters[name] < least {
			return fmt.Sprintf("%s is %d, want %d at least", name, counters[name], least)
		}
	}
	return ""
}

// ResetCounters are the names of the counters that say what a reset came to.
var ResetCounters = []string{
	"link_error_recovery", "link_downed", "mtu_changes", "xdp_detached", "xdp_reattached",
	"xdp_pass_no_socket", "retransmits",
}
