package crowd

import "net/netip"

// Limits are those of places that are never all taken by one: how many there are, and how many
// somebody at one address may have.
type Limits struct{ Places, Each int }

// Place says whether there is a place for somebody at an address, and which of the holders gives
// way for it, -1 for none of them; who came first is first. of tells where a holder is, and whether
// he has his place for nothing.
//
// Who has his place for nothing gives way to anybody, or to his own where the address has as many
// places as it may. Else one of a host that has more gives way to one that has less and will not
// have more by it, and in the same way among the addresses of a host. As Host has it, on one link
// all may be one over IPv6: for more than its first place an address gets none of another that will
// have less than it. Nobody else gives way: who is served stays, and he who comes is to try again
// later.
func Place[H any](
	holders []H, l Limits, to netip.Addr, of func(H) (at netip.Addr, idle bool),
) (leaves int, ok bool) {
	hosts, addrs := map[netip.Prefix]int{}, map[netip.Addr]int{}
	for _, h := range holders {
		at, _ := of(h)
		hosts[Host(at)]++
		addrs[at]++
	}
	idle := func(_ netip.Addr, idle bool) bool { return idle }
	switch {
	case addrs[to] >= l.Each:
		leaves = first(holders, of, func(at netip.Addr, idle bool) bool { return idle && at == to })
	case len(holders) < l.Places:
		return -1, true
	default:
		if leaves = first(holders, of, idle); leaves >= 0 {
			break
		}
		leaves = first(holders, of, func(at netip.Addr, _ bool) bool {
			host, fewer := Host(at), addrs[at] > addrs[to]+1
			return hosts[host] > hosts[Host(to)]+1 && (fewer || addrs[to] == 0) ||
				host == Host(to) && fewer
		})
	}
	return leaves, leaves >= 0
}

// first is who came first of those that may give way: of the host that has most of these, and there
// of the address that has most of them. It is -1 for nobody.
func first[H any](
	holders []H, of func(H) (netip.Addr, bool), may func(at netip.Addr, idle bool) bool,
) int {
	i := GivesWay(holders, func(h H) (netip.Prefix, bool) {
		at, idle := of(h)
		return Host(at), may(at, idle)
	})
	if i < 0 {
		return i
	}
	at, _ := of(holders[i])
	host := Host(at)
	return GivesWay(holders, func(h H) (netip.Addr, bool) {
		at, idle := of(h)
		return at, Host(at) == host && may(at, idle)
	})
}
