package message

import "xroce/roce/msg"

// A Cost is what one message takes, of both ends, headers of the wire not counted.
type Cost struct {
	Choice     msg.Choice
	Frames     int            // writes into slots
	FrameBytes int            // with the headers of frames and of records
	Reads      int            // RDMA READs, of ReadBytes
	ReadBytes  int            //
	Writes     int            // RDMA WRITEs to where the message goes, of WriteBytes
	WriteBytes int            //
	Control    map[string]int // control messages by name, of both ends
	Packets    int            // of all these, of both ends; acknowledges are not counted
	Copied     int            // bytes that processors copied, of both ends together
	Allocated  [2]int         // bytes that were made and registered to stay: sender, receiver
	Exposed    [2]int         // bytes that were registered for this message alone
	Keys       [2]int         // regions that were made for that
	Ways       int            // times that the wire was crossed until the message was there

	mtu int // of the path
}

// packets counts those that carry n bytes: at least one.
func (c *Cost) packets(n int) { c.Packets += max(1, (n+c.mtu-1)/c.mtu) }

// The methods below count, and do nothing for a nil Cost.

func side(sends bool) int {
	if sends {
		return 0
	}
	return 1
}

func (c *Cost) allocated(sends bool, n int) {
	if c != nil {
		c.Allocated[side(sends)] += n
	}
}

func (c *Cost) exposed(sends bool, pieces [][]byte) {
	if c == nil {
		return
	}
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	if n > 0 {
		c.Exposed[side(sends)] += n
		c.Keys[side(sends)]++ // for all pieces
	}
}

func (c *Cost) said(_ bool, b []byte) {
	if c == nil {
		return
	}
	c.packets(len(b))
	if m, err := msg.ParseControl(b); err == nil {
		c.Control[m.Type.String()]++
	}
}

func (c *Cost) framed(b []byte) {
	if c != nil {
		c.Frames++
		c.FrameBytes += len(b)
		c.packets(len(b))
	}
}

func (c *Cost) read(n int) {
	if c != nil {
		c.Reads++
		c.ReadBytes += n
		c.Packets++ // the request
		c.packets(n)
	}
}

func (c *Cost) wrote(n int) {
	if c != nil {
		c.Writes++
		c.WriteBytes += n
		c.packets(n)
	}
}
