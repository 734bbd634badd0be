package cases

import (
	"cmp"
	"slices"
	"strings"
)

// A card is a network card that QEMU emulates, as the newest driver of Linux has it.
type card struct {
	native   int // the largest MTU of those here with which the driver runs XDP programs
	zeroCopy int // and with which it has zero-copy
	largest  int // the largest MTU that cases are run with, 0 for any
	queues   int // 0 for one
}

// CardZeroCopy is the card that the most cases are run on: every QEMU has it, and its driver
// has zero-copy.
const CardZeroCopy = "virtio-net-pci"

// cards are those that cases are run on, by QEMU's names. Which versions of Linux have what is
// in docs/interop.md.
var cards = map[string]card{
	// A frame that is in two chunks is copied with each of them.
	CardZeroCopy: {native: 4200, zeroCopy: 1500, queues: 2},
	"igb":        {native: 1500, zeroCopy: 1500},
	// With Linux 7.3 and QEMU 7.2 no frame of more than 3 KiB arrives, not even a ping, when the
	// MTU was made larger after an XDP program had been there.
	"vmxnet3": {native: 1500, largest: 1500},
	"e1000e":  {},
}

// CardQueues is how many queues the card of a case has.
func CardQueues(c Case) int { return max(1, cards[c.Card].queues) }

// CardArgs are the arguments by which xroce has the most that the card of a case can do, and
// fails when it cannot have that. There are none without a card.
func CardArgs(c Case) []string {
	k, ok := cards[c.Card]
	if !ok {
		return nil
	}
	args := []string{"--xdp-mode", "generic", "--xsk-mode", "copy"}
	mtu := InterfaceMTU(c.MTU)
	if c.Generic {
		return args
	}
	if mtu <= k.native {
		args[1] = "native"
	}
	if mtu <= k.zeroCopy {
		args[3] = "zero-copy"
	}
	return args
}

// onCards are the cases of xroce in a VM: with zero-copy what the short part of the others has,
// and xroce with itself; on other cards some of that.
func onCards() []Case {
	list := append(onCard(CardZeroCopy, shortNames), resets(CardZeroCopy, 1024, 4096)...)
	list = append(append(list, selves(CardZeroCopy)...), selfResets(CardZeroCopy)...)
	for _, card := range []string{"igb", "vmxnet3", "e1000e"} {
		list = append(append(list, onCard(card, cardNames)...), resets(card, 1024)...)
	}
	return list
}

// onCard are the cases of names without a card, on one. Those are left out that compare
// packets, and that are about rxe0 alone.
func onCard(card, names string) []Case {
	chosen, largest := strings.Fields(names), cmp.Or(cards[card].largest, 1<<16)
	var list []Case
	for _, c := range inNamespace() {
		if slices.Contains(chosen, c.Name()) && !c.Trace && c.Fault != Restart &&
			InterfaceMTU(c.MTU) <= largest {
			c.Card = card
			list = append(list, c)
		}
	}
	return list
}

// cardNames are the cases on a card that is one of several: each kind of operation over the
// smaller MTU, and one over the larger.
const cardNames = `
	ibv_rc_pingpong/server/rc/mtu1024/ipv4/1B
	ib_read_bw/server/rc/mtu1024/ipv4/65536B
	ib_send_bw/client/rc/mtu1024/ipv4/65536B
	ib_send_lat/client/ud/mtu1024/ipv4/1000B
	ib_write_bw/server/rc/mtu1024/ipv6/1048576B
	ib_atomic_bw/client/rc/mtu1024/ipv6/fetch_and_add
	rping/server/rc/mtu1024/ipv6/60000B
	ibv_rc_pingpong/client/rc/mtu4096/ipv6/1048576B
`

// selves are the cases of xroce with itself.
func selves(card string) []Case {
	var list []Case
	for _, mtu := range pathMTUs {
		for _, c := range []Case{
			{Tool: "ibv_rc_pingpong", Size: 1 << 16},
			{Tool: "ibv_ud_pingpong", Transport: "UD", Size: 1000},
			{Tool: "ib_write_bw", Size: 1 << 20},
			{Tool: "ib_read_bw", Size: 1 << 16},
			{Tool: "ib_atomic_bw", Flags: []string{"-A", "FETCH_AND_ADD"}},
			{Tool: "rping", CM: true, Size: 60000},
			{Tool: message.Name, CM: true, Size: 100},
			{Tool: message.Name, CM: true, Size: 1 << 18},
		} {
			c.Transport = cmp.Or(c.Transport, "RC")
			for i, role := range roles {
				c.Role, c.MTU, c.Family, c.Card, c.Self = role, mtu, families[i], card, true
				list = append(list, c)
			}
		}
	}
	return list
}
