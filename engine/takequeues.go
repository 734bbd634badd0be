package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrQueuesLeftOut says that a device was to take some receive queues of an interface and not
// all. See Options.Queues.
var ErrQueuesLeftOut = errors.New("the interface has receive queues that nobody takes")

// takeQueues returns the queues that a device takes of an interface with so many receive queues.
func (o *Options) takeQueues(iface string, have int) ([]int, error) {
	all := make([]int, have)
	for q := range all {
		all[q] = q
	}
	if o.Queues == nil {
		return all, nil
	}
	taken := slices.Clone(o.Queues)
	slices.Sort(taken)
	for i, q := range taken {
		switch {
		case q < 0 || q >= have:
			return nil, fmt.Errorf("engine: %s has no receive queue %d, only 0 to %d", iface, q,
				have-1)
		case i > 0 && taken[i-1] == q:
			return nil, fmt.Errorf("engine: queue %d of %s is named twice", q, iface)
		}
	}
	if len(taken) == 0 {
		return nil, errors.New("engine: a device needs a queue")
	}
	left := slices.DeleteFunc(all, func(q int) bool { return slices.Contains(taken, q) })
	if len(left) == 0 || o.Partial || o.Steer {
		return taken, nil
	}
	cure := "take all, with --queues all"
	if last := taken[len(taken)-1]; last == len(taken)-1 {
		cure += fmt.Sprintf(", or have it use no others: ethtool -L %s combined %d", iface,
			len(taken))
	}
	return nil, fmt.Errorf("engine: %s: %w: %s of %d; what the card puts there goes to the "+
		"kernel, which refuses it, and connections break; %s; or, where the card is told to put "+
		"nothing there, --force", iface, ErrQueuesLeftOut, numbers(left), have, cure)
}

// numbers lists numbers, in order, as "1, 3-7".
func numbers(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := fmt.Sprint(list[i])
		if j > i {
			part += fmt.Sprintf("-%d", list[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// divide deals queues out to so many drivers, each of which gets one at least.
func divide(queues []int, drivers int) ([][]int, error) {
	if drivers > len(queues) {
		return nil, fmt.Errorf("engine: %d drivers for %d queues: each needs one of its own",
			drivers, len(queues))
	}
	shares := make([][]int, drivers)
	for i, q := range queues {
		shares[i%drivers] = append(shares[i%drivers], q)
	}
	return shares, nil
}

// errNoQueue says that a driver has nothing to receive from any more.
var errNoQueue = errors.New("none of the receive queues of a driver is left")

// dealAgain deals queues out to the drivers of a device that is open, by how many the interface
// has now. A queue has the driver that it had. Those that were named and are gone are missing; a
// driver may be left without any.
func (o *Options) dealAgain(have int) [][]int {
	queues := slices.Sorted(slices.Values(o.Queues))
	for q := 0; o.Queues == nil && q < have; q++ {
		queues = append(queues, q)
	}
	shares := make([][]int, max(1, o.Drivers))
	for i, q := range queues {
		if q < have {
			shares[i%len(shares)] = append(shares[i%len(shares)], q)
		}
	}
	return shares
}

// missing lists those numbers that are not in another list.
func missing(list, other []int) (left []int) {
	for _, n := range list {
		if !slices.Contains(other, n) {
			left = append(left, n)
		}
	}
	return left
}
