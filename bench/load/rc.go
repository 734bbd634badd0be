package load

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"xroce/bench/worker"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// Bytes of a packet of a reliable connection beside its payload.
const (
	// RCOverhead is that of a packet that is neither the first of a WRITE nor
	// carries immediate data: Ethernet, IPv4, UDP, BTH and ICRC.
	RCOverhead = headersLen + 12 + 4
	// WriteOverhead is that of the first packet of a WRITE, which has a RETH.
	WriteOverhead = RCOverhead + 16
)

// rcModes are the works over reliable connections, each with the work of the
// other end. They return the window and the messages in all.
var rcModes = map[string]struct {
	background bool // the device has its own loop, and the worker sleeps
	run        func(*conn, worker.Options) (*worker.Window, uint64, *worker.RTT, error)
}{
	"write":          {false, rcWrite},
	"target":         {false, rcTarget},
	"write-walk":     {false, rcWriteWalk},
	"write-many":     {false, rcWriteMany},
	"layout":         {false, blocked(byLayout)},
	"pack":           {false, blocked(byHand)},
	"sges":           {false, blocked(bySGEs)},
	"turns-layout":   {false, inTurn(byLayout, false, turnDepth)},
	"turns-pack":     {false, inTurn(byHand, false, turnDepth)},
	"turns-sges":     {false, inTurn(bySGEs, true, turnDepth)},
	"alone-layout":   {false, inTurn(byLayout, false, 1)},
	"alone-pack":     {false, inTurn(byHand, false, 1)},
	"alone-sges":     {false, inTurn(bySGEs, true, 1)},
	"target-many":    {false, rcTargetMany},
	targetPaged:      {false, rcTarget},
	targetFresh:      {false, rcTarget},
	"send":           {false, rcSend},
	"recv":           {false, rcServe(noAnswer)},
	"ping":           {false, rcPing(spinning)},
	"echo":           {false, rcServe(spinning)},
	"ping-sleep":     {false, rcPing(sleeping)},
	"echo-sleep":     {false, rcServe(sleeping)},
	"ping-piggyback": {false, rcPing(spinning)},
	"echo-piggyback": {false, rcServe(spinning)},
	"ping-busy":      {true, rcPing(spinning)},
	"echo-busy":      {true, rcServe(spinning)},
	"ping-loop":      {true, rcPing(sleeping)},
	"echo-loop":      {true, rcServe(sleeping)},
	"call":           {false, rcCall},
	"answer":         {false, rcAnswer},

	"call-same":     {false, rcCallInTurn},
	"call-halves":   {false, rcCallInTurn},
	"answer-halves": {false, rcAnswer},

	"call-piggyback":   {false, rcCall},
	"answer-piggyback": {false, rcAnswer},
}

// RC does the work of o.Mode over reliable connections. o.Message is the length
// of a message in bytes; the path MTU is that which makes full packets frames of
// o.Size bytes. Except in the modes of a background loop the device is in direct
// mode: the worker's one thread does everything.
func RC(o worker.Options, in io.Reader, out io.Writer) (r worker.Report, err error) {
	mode, ok := rcModes[o.Mode]
	if !ok {
		return r, fmt.Errorf("load: no mode %q over RC", o.Mode)
	}
	c, err := openConn(o, mode.background)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	peer, err := worker.Exchange(in, out, c.card().String())
	if err != nil {
		return r, err
	}
	if err := c.connect(o, peer); err != nil {
		return r, err
	}
	w, total, rtt, err := mode.run(c, o)
	counts, uncounted := c.counters()
	if isStarved(err) {
		return worker.Report{
			Mode: worker.RC, Counters: counts, GaveUp: fmt.Sprintf("%v; counted %v", err, counts),
		}, nil
	}
	if err != nil {
		return r, fmt.Errorf("%w; counted %v", err, counts)
	}
	if uncounted != nil {
		return r, uncounted
	}
	return worker.Report{
		Packets: w.Packets(), Bytes: w.Packets() * uint64(o.Message), Seconds: w.Seconds(),
		Total: total, Mode: worker.RC + ", native copy", RTT: rtt, Cost: w.Cost(), Counters: counts,
		Ratio: c.ratio,
	}, nil
}

// isStarved reports whether an end could not go on because one of both was not scheduled in time.
func isStarved(err error) bool {
	return errors.Is(err, errRetries) || errors.Is(err, errNoTurns) ||
		errors.Is(err, errUnanswered)
}

// pipeline is how many messages of a length are in flight and how many of them
// share a completion: of short ones as many as the send queue holds, of long ones
// as many as perftest's bandwidth tests keep outstanding, or more.
func pipeline(message int) (depth, every uint64) {
	if message <= 16<<10 {
		return sendDepth, 32
	}
	return 16, 1
}

// stream keeps the pipeline full of copies of a work request until the end of
// the window. They are posted as lists.
func (c *conn) stream(o worker.Options, wr roce.SendWR) (*worker.Window, uint64, error) {
	depth, every := pipeline(o.Message)
	var posted, total uint64
	list := slices.Repeat([]roce.SendWR{wr}, o.Batch)
	if o.Memory > 0 {
		for i := range list { // each gets pieces of its own
			list[i].SGList = slices.Clone(wr.SGList)
		}
	}
	w := c.newWindow(o)
	for w.Tick(w.Now(), total) {
		room := list[:min(uint64(len(list)), depth-(posted-total))]
		for i := range room {
			room[i].Flags = 0
			if (posted+uint64(i)+1)%every == 0 {
				room[i].Flags = roce.SendSignaled
			}
			at := (posted + uint64(i)) * uint64(o.Message)
			if c.walk > 0 {
				room[i].RemoteAddr = c.remote.addr + at%c.walk
			}
			if o.Memory > 0 {
				room[i].SGList[0].Addr = c.mr.Addr() + at%uint64(o.Memory)
			}
		}
		n, err := c.qp.PostSends(room)
		if err != nil && !errors.Is(err, roce.ErrQueueFull) {
			return nil, 0, err
		}
		posted += uint64(n)
		done, err := c.poll()
		if err != nil {
			return nil, 0, err
		}
		total += every * uint64(len(done))
	}
	return w, total, nil
}

// streamOf is stream with something to do before each post, so one by one.
func (c *conn) streamOf(
	o worker.Options, wr roce.SendWR, before func(*roce.SendWR),
) (*worker.Window, uint64, error) {
	depth, every := pipeline(o.Message)
	var posted, total uint64
	w := c.newWindow(o)
	for w.Tick(w.Now(), total) {
		for n := 0; n < o.Batch && posted-total < depth; n++ {
			wr.Flags = 0
			if (posted+1)%every == 0 {
				wr.Flags = roce.SendSignaled
			}
			before(&wr)
			err := c.qp.PostSend(&wr)
			if errors.Is(err, roce.ErrQueueFull) {
				break
			}
			if err != nil {
				return nil, 0, err
			}
			posted++
		}
		done, err := c.poll()
		if err != nil {
			return nil, 0, err
		}
		total += every * uint64(len(done))
	}
	return w, total, nil
}

// writeTo is a WRITE of one message.
func (c *conn) writeTo(o worker.Options) roce.SendWR {
	return roce.SendWR{
		Opcode: roce.OpWrite, SGList: []roce.SGE{c.mr.SGE(0, o.Message)},
		RemoteAddr: c.remote.addr, RKey: c.remote.rkey,
	}
}

func rcWrite(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	if o.Memory > 0 {
		c.walk = uint64(o.Memory) // the other end has as much
	}
	w, total, err := c.stream(o, c.writeTo(o))
	if err != nil {
		return nil, 0, nil, err
	}
	return w, total, nil, c.note()
}

// rcTarget lets the other end write until it says farewell.
func rcTarget(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	w := c.newWindow(o)
	for w.Tick(w.Now(), 0) {
		done, err := c.wait()
		if err != nil {
			return nil, 0, nil, err
		}
		if len(done) > 0 {
			w.Close(0) // the writer began a little earlier
			c.linger()
			return w, 0, nil, nil
		}
	}
	if err := c.awaitNote(timeout.Scaled(5 * time.Second)); err != nil {
		return nil, 0, nil, err
	}
	c.linger()
	return w, 0, nil, nil
}

func rcSend(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	w, total, err := c.stream(o, roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{c.mr.SGE(0, o.Message)},
	})
	if err != nil {
		return nil, 0, nil, err
	}
	// What is in flight needs this end for its acknowledgements and resends.
	for end := time.Now().Add(worker.Quiet); time.Now().Before(end); {
		if _, err := c.poll(); err != nil {
			return nil, 0, nil, err
		}
	}
	return w, total, nil, nil
}
