package host

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"xroce/roce/wire"
	"xroce/xsk"
)

// A Verdict says what a finding means for a device.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "yes"  // as it should be
	Warning Verdict = "warn" // works, less well
	Missing Verdict = "no"   // a device cannot work
	Note    Verdict = "-"    // neither: a fact, or a feature that is optional
)

// A Finding is one thing that was looked at.
type Finding struct {
	What    string  `json:"what"`
	Verdict Verdict `json:"verdict"`
	Value   string  `json:"value"`
	Remedy  string  `json:"remedy,omitempty"` // what to do, when something is wrong
}

// Works reports whether nothing that a device needs is missing.
func Works(list []Finding) bool {
	for _, f := range list {
		if f.Verdict == Missing {
			return false
		}
	}
	return true
}

// Count returns how many findings are good, and how many there is something to mend of.
func Count(list []Finding) (ok, mend int) {
	for _, f := range list {
		switch f.Verdict {
		case Good:
			ok++
		case Warning, Missing:
			mend++
		}
	}
	return ok, mend
}

// umemBytes is what a device locks: the frames for a path MTU of 4096. It makes do with
// less, down to leastBytes.
const (
	umemBytes  = 64 << 20
	leastBytes = umemBytes / 16
)

// General judges the machine and the user. The program's path is for remedies.
func General(m Machine, program string) ([]Finding, error) {
	release, err := m.Kernel()
	if err != nil {
		return nil, err
	}
	u, err := m.User()
	if err != nil {
		return nil, err
	}
	list := []Finding{judgeKernel(release), {
		What: "CPUs", Verdict: Note, Value: fmt.Sprint(u.CPUs),
	}}
	if u.CPUs < 2 {
		list[1].Verdict = Warning
		list[1].Remedy = "the packet loop and the application share one CPU; do not use --busy"
	}
	list = append(list, capabilities(u, program)...)
	list = append(list, judgeMemory(u), judgeCgroup(u), Finding{
		What: "huge pages", Verdict: Note,
		Value: fmt.Sprintf("%d free of %d KiB (not needed)", u.HugePages, u.HugeKiB),
	})
	support, err := m.BPF()
	if err != nil {
		return nil, err
	}
	f := Finding{What: "load the XDP program", Verdict: Good, Value: "loaded, and unloaded again"}
	if !support.Load {
		f.Verdict, f.Value = Missing, oneLine(support.Cause)
		if len(support.Missing) > 0 {
			f.Remedy = "give " + strings.Join(support.Missing, " and ") + ": " + Grant(program)
		}
	}
	return append(list, f), nil
}

// Kernels by what they can: XDP programs that take frames in several buffers came
// with 5.18, AF_XDP sockets that do with 6.6.
func judgeKernel(release string) Finding {
	f := Finding{What: "kernel", Verdict: Good, Value: release}
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		f.Verdict, f.Remedy = Warning, "no version that is known; 6.6 or later is best"
		return f
	}
	switch v := major<<16 | minor; {
	case v < 5<<16|18:
		f.Verdict, f.Remedy = Missing, "use Linux 5.18 or later, 6.6 for path MTU 4096"
	case v < 6<<16|6:
		f.Verdict = Warning
		f.Remedy = "without multi-buffer AF_XDP (6.6) the path MTU is at most 2048"
	}
	return f
}

// Grant is how to give the program what a device needs, as commands in one line. A
// file with capabilities gives them to whoever may run it, so who that is comes first;
// setcap comes last because a change of group takes capabilities away (chown(2)).
func Grant(program string) string {
	return "run as root, or once, for the members of a GROUP that you trust with the network: " +
		"sudo chgrp GROUP " + program + " && sudo chmod 0750 " + program + " && sudo setcap " +
		"cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep " + program
}

func capabilities(u User, program string) []Finding {
	var list []Finding
	for _, c := range Capabilities {
		f := Finding{What: c.Name, Verdict: Good, Value: "needed to " + c.Use}
		switch {
		case u.Caps[c.Name]:
		case c.Required && (c.Name != "CAP_BPF" || !u.Caps["CAP_SYS_ADMIN"]):
			f.Verdict, f.Remedy = Missing, Grant(program)
		default:
			f.Verdict = Note
			f.Value = "would allow to " + c.Use
		}
		list = append(list, f)
	}
	return list
}

// judgeMemory looks at the limit of locked memory, which CAP_IPC_LOCK lifts.
func judgeMemory(u User) Finding {
	f := Finding{What: "locked memory", Verdict: Good, Value: "unlimited"}
	if u.LockedBytes == ^uint64(0) {
		return f
	}
	f.Value = fmt.Sprintf("limit %d KiB", u.LockedBytes>>10)
	switch {
	case u.Caps["CAP_IPC_LOCK"]:
		f.Value += ", which CAP_IPC_LOCK lifts"
	case u.LockedBytes < umemBytes:
		f.Verdict = Warning
		if u.LockedBytes < leastBytes {
			f.Verdict = Missing
		}
		f.Remedy = fmt.Sprintf("a device locks up to %d MiB, and with less loses bursts sooner: "+
			"ulimit -l unlimited, or give CAP_IPC_LOCK", umemBytes>>20)
	}
	return f
}

// judgeCgroup looks at what the memory cgroups have left, half of which a device takes at
// most.
func judgeCgroup(u User) Finding {
	f := Finding{What: "memory cgroup", Verdict: Good, Value: "no limit"}
	if u.ChargedBytes == xsk.Unlimited {
		return f
	}
	f.Value = fmt.Sprintf("%s has %d MiB left", u.Cgroup, u.ChargedBytes>>20)
	if u.ChargedBytes < 2*umemBytes {
		f.Verdict = Warning
		if u.ChargedBytes < 2*leastBytes {
			f.Verdict = Missing
		}
		f.Remedy = fmt.Sprintf("a device takes half of it for frames, up to %d MiB, and with less "+
			"loses bursts sooner: raise memory.max", umemBytes>>20)
	}
	return f
}

// Judge looks at one interface, of which a device takes some queues, at least one, and tries the
// first of them.
func Judge(m Machine, i Interface, ours []int) []Finding {
	queue := ours[0]
	list := []Finding{
		judgeType(i), judgeUp(i), judgeAddrs(i), judgeMTU(i), judgeQdisc(i), judgeProgram(i),
	}
	if !i.Ethernet {
		return list
	}
	if card, err := m.Card(i.Name); err == nil {
		list = append(list, JudgeCard(i, &card, ours)...)
	} else {
		list = append(list, Finding{What: "driver", Verdict: Warning, Value: oneLine(err)})
	}
	support, err := m.Probe(i.Index, queue)
	f := Finding{
		What: fmt.Sprintf("AF_XDP on queue %d", queue), Verdict: Good, Value: "works",
	}
	if err == nil {
		err = support.Copy.Err
	}
	if err != nil {
		f.Verdict, f.Value, f.Remedy = Missing, oneLine(err), probeRemedy(err, i)
		return append(list, f)
	}
	list = append(list, f)
	for _, feature := range support.Features()[1:] {
		f := Finding{What: feature.Name, Verdict: Good, Value: "yes"}
		if !feature.OK {
			f.Verdict, f.Value = Note, "no: "+oneLine(feature.Err)
		}
		list = append(list, f)
	}
	if !support.MultiBuffer.OK && i.ActiveMTU() == wire.MTU4096 {
		list = append(list, Finding{
			What: "path MTU 4096", Verdict: Warning, Value: "needs multi-buffer frames",
			Remedy: "use a path MTU of 2048",
		})
	}
	return list
}

func judgeType(i Interface) Finding {
	if !i.Ethernet {
		return Finding{
			"type", Missing, i.Kind + ", no Ethernet",
			"choose an Ethernet interface ('xroce devices' lists them)",
		}
	}
	return Finding{What: "type", Verdict: Good, Value: "Ethernet (" + i.Kind + ")"}
}

func judgeUp(i Interface) Finding {
	switch {
	case !i.Up:
		return Finding{"state", Missing, "down", "ip link set " + i.Name + " up"}
	case !i.Carrier:
		return Finding{"state", Warning, "up, no carrier", "plug in the cable, or its other end"}
	}
	return Finding{What: "state", Verdict: Good, Value: "up"}
}

func judgeAddrs(i Interface) Finding {
	var all []string
	routable := false
	for _, a := range i.Addrs {
		all = append(all, a.String())
		routable = routable || !a.IsLinkLocalUnicast()
	}
	if !routable {
		return Finding{
			"addresses", Warning, "only link-local",
			"ip address add 192.0.2.1/24 dev " + i.Name + " (or what fits your network)",
		}
	}
	return Finding{What: "addresses", Verdict: Good, Value: strings.Join(all, " ")}
}

// The netdevice MTUs that the path MTUs need, rounded up to what people set.
const (
	mtuFor4096 = 4200
	mtuFor256  = 1500
)

func judgeMTU(i Interface) Finding {
	active := i.ActiveMTU()
	f := Finding{
		What: "MTU", Verdict: Good, Value: fmt.Sprintf("%d: path MTU %d", i.MTU, active.Bytes()),
	}
	switch {
	case active == 0:
		f.Verdict, f.Value = Missing, fmt.Sprintf("%d: too small for any path MTU", i.MTU)
		f.Remedy = fmt.Sprintf("ip link set %s mtu %d", i.Name, mtuFor256)
	case active < wire.MTU4096:
		f.Verdict = Note
		f.Remedy = fmt.Sprintf("path MTU 4096 moves more per packet: ip link set %s mtu %d, at "+
			"both ends and in between", i.Name, mtuFor4096)
	}
	return f
}

func judgeQdisc(i Interface) Finding {
	f := Finding{What: "queueing discipline", Verdict: Good, Value: i.Qdisc}
	if i.Driver == "veth" && (i.Qdisc == "noqueue" || i.Qdisc == "none") {
		f.Verdict = Warning
		f.Value += ": a veth drops what exceeds its ring of 256 frames"
		f.Remedy = "tc qdisc add dev " + i.Name + " root pfifo"
	}
	return f
}

func judgeProgram(i Interface) Finding {
	if i.XDP == 0 {
		return Finding{What: "XDP program", Verdict: Good, Value: "none attached"}
	}
	return Finding{
		"XDP program", Missing,
		fmt.Sprintf("id %d is attached already, in %s mode", i.XDP, i.XDPMode),
		fmt.Sprintf("'bpftool prog show id %d' tells whose; end that program, or if nobody runs "+
			"it, detach its link, which 'bpftool link' lists: bpftool link detach id ID; if it "+
			"has none: ip link set dev %s xdp off", i.XDP, i.Name),
	}
}

func probeRemedy(err error, i Interface) string {
	switch {
	case errors.Is(err, unix.EBUSY):
		return "another AF_XDP socket has the queue: 'ss --xdp -p' lists them; or try --queue"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "needs CAP_NET_RAW: see above"
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		return "needs more locked memory: ulimit -l unlimited"
	case errors.Is(err, unix.EAFNOSUPPORT):
		return "the kernel is built without CONFIG_XDP_SOCKETS"
	case errors.Is(err, unix.ENETDOWN):
		return "ip link set " + i.Name + " up"
	}
	return ""
}

// oneLine is an error without line breaks, for a table.
func oneLine(err error) string {
	if err == nil {
		return "no reason given"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
