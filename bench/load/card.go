package load

import (
	"encoding/hex"
	"fmt"
	"net/netip"

	"xroce/roce/wire"
)

// A card is what the two ends tell each other, as one line: however many queue
// pairs they connect, it is one exchange.
type card struct {
	rkey uint32
	addr uint64
	gid  netip.Addr
	qps  []pairCard
}

// A pairCard is what the other end must know of one queue pair.
type pairCard struct {
	qpn uint32
	psn wire.PSN // of the first packet it sends
}

// pairLen is the length of a queue pair on a card: two numbers of 24 bits.
const pairLen = 6

func (c card) String() string {
	list := make([]byte, 0, pairLen*len(c.qps))
	for _, q := range c.qps {
		list = append(list, byte(q.qpn>>16), byte(q.qpn>>8), byte(q.qpn),
			byte(q.psn>>16), byte(q.psn>>8), byte(q.psn))
	}
	return fmt.Sprintf("%d %d %s %x", c.rkey, c.addr, c.gid, list)
}

func parseCard(line string) (c card, err error) {
	var gid, list string
	_, err = fmt.Sscan(line, &c.rkey, &c.addr, &gid, &list)
	if err == nil {
		c.gid, err = netip.ParseAddr(gid)
	}
	var b []byte
	if err == nil {
		b, err = hex.DecodeString(list)
	}
	if err == nil && len(b)%pairLen != 0 {
		err = fmt.Errorf("%d bytes of queue pairs", len(b))
	}
	if err != nil {
		return card{}, fmt.Errorf("load: card %.80q: %w", line, err)
	}
	for ; len(b) > 0; b = b[pairLen:] {
		c.qps = append(c.qps, pairCard{
			qpn: uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
			psn: wire.PSN(b[3])<<16 | wire.PSN(b[4])<<8 | wire.PSN(b[5]),
		})
	}
	return c, nil
}
