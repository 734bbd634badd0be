package bridge

import (
	"fmt"

	"xroce/roce/clock"
)

// MAC is an address of Ethernet.
type MAC [6]byte

// group reports whether an address is that of a group, or of all.
func (m MAC) group() bool { return m[0]&1 != 0 }

// Port is where a frame came from or goes to: Inside, or a peer by its number from 1 on.
type Port int

// Inside is the port of the segment that the tunnel is a part of.
const Inside Port = 0

// Where a frame goes besides one port.
const (
	Drop  Port = -1 // nowhere
	Flood Port = -2 // to all peers
)

// A Config bounds what a Table holds. A zero field has its default.
type Config struct {
	Size  int        // addresses in all, 4,096 by default
	Ports int        // ports, with Inside: needed
	Age   clock.Time // how long an address is kept that sends nothing, 300 s by default
}

// Limits and defaults of a Config.
const (
	defaultSize = 4096
	maxSize     = 1 << 20
	maxPorts    = 1 << 12
	defaultAge  = 300 * clock.Second // IEEE 802.1D 7.9.2
)

// Stats count what a Table did.
type Stats struct {
	Learned uint64 // addresses that were new
	Moved   uint64 // addresses that came by another port than before
	Expired uint64 // addresses that had sent nothing for too long
	Evicted uint64 // addresses that made room for others of their port
}

// An entry is an address, in the list of its port, the one that was heard last at the end.
type entry struct {
	mac        MAC
	port       Port
	heard      clock.Time
	prev, next int32 // in entries; the list begins and ends with the head of the port
}

// A Table knows which port an address is at.
type Table struct {
	config  Config
	share   int // addresses a port may have
	entries []entry
	used    []int // by port
	index   map[MAC]int32
	free    []int32
	stats   Stats
}

// New makes an empty table. Its memory is taken here.
func New(c Config) (*Table, error) {
	c, err := c.complete("addresses")
	if err != nil {
		return nil, err
	}
	t := &Table{
		config: c, share: c.Size / c.Ports, entries: make([]entry, c.Ports+c.Size),
		used: make([]int, c.Ports), index: make(map[MAC]int32, c.Size),
		free: make([]int32, 0, c.Size),
	}
	for i := range c.Ports {
		t.entries[i].prev, t.entries[i].next = int32(i), int32(i)
	}
	for i := len(t.entries) - 1; i >= c.Ports; i-- {
		t.free = append(t.free, int32(i))
	}
	return t, nil
}

// complete fills in what is left at zero, and refuses what makes no table of entries.
func (c Config) complete(entries string) (Config, error) {
	if c.Size == 0 {
		c.Size = defaultSize
	}
	if c.Age == 0 {
		c.Age = defaultAge
	}
	if c.Ports < 2 || c.Ports > maxPorts || c.Size < c.Ports || c.Size > maxSize || c.Age < 0 {
		return Config{}, fmt.Errorf("bridge: no table of %d %s for %d ports, each for %d ns",
			c.Size, entries, c.Ports, c.Age)
	}
	return c, nil
}

// Stats are what was counted.
func (t *Table) Stats() Stats { return t.stats }

// Len is how many addresses the table has.
func (t *Table) Len() int { return len(t.index) }

// Learn notes that an address sends by a port. The address of a group sends nothing and is
// not noted.
func (t *Table) Learn(now clock.Time, mac MAC, port Port) {
	if mac.group() || mac == (MAC{}) || port < 0 || int(port) >= t.config.Ports {
		return
	}
	i, known := t.index[mac]
	switch {
	case known && t.entries[i].port == port:
		t.unlink(i)
	case known:
		t.stats.Moved++
		t.remove(i)
		i = t.place(mac, port)
	default:
		t.stats.Learned++
		i = t.place(mac, port)
	}
	t.entries[i].heard = now
	t.link(i)
}

// place takes a place for an address, from others of its port when that has its share.
func (t *Table) place(mac MAC, port Port) int32 {
	if t.used[port] >= t.share {
		t.stats.Evicted++
		t.remove(t.entries[port].next)
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.entries[i] = entry{mac: mac, port: port}
	t.index[mac] = i
	t.used[port]++
	return i
}

// remove gives a place back.
func (t *Table) remove(i int32) {
	e := &t.entries[i]
	t.unlink(i)
	t.used[e.port]--
	delete(t.index, e.mac)
	t.free = append(t.free, i)
}

func (t *Table) unlink(i int32) {
	e := &t.entries[i]
	t.entries[e.prev].next, t.entries[e.next].prev = e.next, e.prev
}

func (t *Table) link(i int32) {
	head := int32(t.entries[i].port)
	last := t.entries[head].prev
	t.entries[i].prev, t.entries[i].next = last, head
	t.entries[last].next, t.entries[head].prev = i, i
}

// Forget drops all addresses of a port, as when its peer has gone.
func (t *Table) Forget(port Port) {
	for t.used[port] > 0 {
		t.remove(t.entries[port].next)
	}
}

// Expire drops what was not heard for too long.
func (t *Table) Expire(now clock.Time) {
	for port := range t.config.Ports {
		for t.used[port] > 0 {
			first := t.entries[port].next
			if now-t.entries[first].heard < t.config.Age {
				break
			}
			t.stats.Expired++
			t.remove(first)
		}
	}
}

// Find is the port of an address that was heard lately enough.
func (t *Table) Find(now clock.Time, mac MAC) (Port, bool) { return t.find(now, mac) }

// find is Find.
func (t *Table) find(now clock.Time, mac MAC) (Port, bool) {
	i, ok := t.index[mac]
	if !ok || now-t.entries[i].heard >= t.config.Age {
		return 0, false
	}
	return t.entries[i].port, true
}

// FromInside says where a frame from inside goes: to a peer, to all, or nowhere, because it is
// for somebody inside, or from nobody.
func (t *Table) FromInside(now clock.Time, dst, src MAC) Port {
	if src.group() {
		return Drop
	}
	t.Learn(now, src, Inside)
	if dst.group() {
		return Flood
	}
	switch port, ok := t.find(now, dst); {
	case !ok:
		return Flood
	case port == Inside:
		return Drop
	default:
		return port
	}
}

// FromPeer reports whether a frame from a peer goes inside, the only place where it may go:
// not when it is for somebody who is known to be at a peer, nor when it is from nobody.
func (t *Table) FromPeer(now clock.Time, dst, src MAC, port Port) bool {
	if src.group() {
		return false
	}
	t.Learn(now, src, port)
	if dst.group() {
		return true
	}
	at, ok := t.find(now, dst)
	return !ok || at == Inside
}
