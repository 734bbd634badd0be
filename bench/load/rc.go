package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk"
)

// RCOverhead is what a packet of a reliable connection has beside its payload
// when it is neither the first of a WRITE nor carries immediate data: Ethernet,
// IPv4, UDP, BTH and ICRC.
const RCOverhead = headersLen + 12 + 4

// Depths of the queues, in work requests.
const (
	writeDepth  = 16   // of WRITEs: as perftest's bandwidth tests keep outstanding, or more
	sendDepth   = 512  // of SENDs
	recvDepth   = 1024 // of receives: more than SENDs, so that no RNR NAK comes
	signalEvery = 32   // SENDs to one completion
)

// A card is what the two ends tell each other, as one line.
type card struct {
	qpn, psn, rkey uint32
	addr           uint64
	gid            netip.Addr
}

func (c card) String() string {
	return fmt.Sprintf("%d %d %d %d %s", c.qpn, c.psn, c.rkey, c.addr, c.gid)
}

func parseCard(line string) (c card, err error) {
	var gid string
	_, err = fmt.Sscanf(line, "%d %d %d %d %s", &c.qpn, &c.psn, &c.rkey, &c.addr, &gid)
	if err == nil {
		c.gid, err = netip.ParseAddr(gid)
	}
	if err != nil {
		return card{}, fmt.Errorf("load: card %q: %w", line, err)
	}
	return c, nil
}

// A conn is one end of a reliable connection, with one buffer.
type conn struct {
	device *engine.Device
	qp     *engine.QP
	cq     *engine.CQ // of sends and receives
	mr     *engine.MR
	local  engine.Endpoint
	remote card
	done   []roce.Completion // room to poll into
}

// RC does the work of o.Mode over a reliable connection: "write" and "target",
// "send" and "recv", "ping" and "echo". o.Message is the length of a message in
// bytes; the path MTU is that which makes full packets frames of o.Size bytes.
// The device is in direct mode: the worker's one thread does everything.
func RC(o worker.Options, in io.Reader, out io.Writer) (r worker.Report, err error) {
	run, ok := map[string]func(*conn, worker.Options) (*worker.Window, uint64, *worker.RTT, error){
		"write": rcWrite, "target": rcTarget, "send": rcSend, "recv": rcRecv,
		"ping": rcPing, "echo": rcEcho,
	}[o.Mode]
	if !ok {
		return r, fmt.Errorf("load: no mode %q over RC", o.Mode)
	}
	c, err := openConn(o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.device.Close()) }()
	mine := card{c.local.QPN, uint32(c.local.PSN), c.mr.RKey(), c.mr.Addr(), c.local.GID.Addr()}
	peer, err := worker.Exchange(in, out, mine.String())
	if err != nil {
		return r, err
	}
	if err := c.connect(o, peer); err != nil {
		return r, err
	}
	w, total, rtt, err := run(c, o)
	if err != nil {
		return r, err
	}
	return worker.Report{
		Packets: w.Packets(), Bytes: w.Packets() * uint64(o.Message), Seconds: w.Seconds(),
		Total: total, Mode: "RC, native copy", RTT: rtt,
	}, nil
}

func openConn(o worker.Options) (*conn, error) {
	d, err := engine.Open(o.Interface, engine.Options{
		Mode: xsk.ModeCopy, Direct: true, Queue: o.Queue,
	})
	if err != nil {
		return nil, err
	}
	c := &conn{device: d, done: make([]roce.Completion, 64)}
	if err := c.create(o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return c, nil
}

func (c *conn) create(o worker.Options) error {
	var err error
	if c.cq, err = c.device.CreateCQ(2 * (sendDepth + recvDepth)); err != nil {
		return err
	}
	pd := c.device.AllocPD()
	access := mem.LocalWrite | mem.RemoteWrite
	if c.mr, err = c.device.RegMR(pd, make([]byte, o.Message), access); err != nil {
		return err
	}
	c.qp, err = c.device.CreateQP(pd, engine.QPInit{
		SendCQ: c.cq, RecvCQ: c.cq, MaxSendWR: sendDepth, MaxRecvWR: recvDepth,
	})
	if err != nil {
		return err
	}
	err = c.qp.Modify(&roce.Attr{State: roce.StateInit, Port: 1, Access: access},
		roce.AttrState|roce.AttrPort|roce.AttrPKeyIndex|roce.AttrAccess)
	if err != nil {
		return err
	}
	for range recvDepth {
		if err := c.postRecv(); err != nil {
			return err
		}
	}
	for i, gid := range c.device.GIDs() {
		if gid.Addr().String() == o.Local {
			c.local, err = c.device.Endpoint(c.qp, i)
			return err
		}
	}
	return fmt.Errorf("load: %s has no GID for %s", o.Interface, o.Local)
}

func (c *conn) connect(o worker.Options, peer string) error {
	var err error
	if c.remote, err = parseCard(peer); err != nil {
		return err
	}
	index := 0
	for i, gid := range c.device.GIDs() {
		if gid == c.local.GID {
			index = i
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return c.qp.Connect(ctx, c.local, engine.Endpoint{
		QPN: c.remote.qpn, PSN: wire.PSN(c.remote.psn), GID: wire.GIDFromAddr(c.remote.gid),
	}, engine.ConnectOptions{SGIDIndex: index, PathMTU: pathMTU(o.Size)})
}

// pathMTU is the one that makes full packets frames of size bytes, or the
// smallest.
func pathMTU(size int) wire.MTU {
	for _, m := range []wire.MTU{wire.MTU4096, wire.MTU2048, wire.MTU1024, wire.MTU512} {
		if size >= m.Bytes()+RCOverhead {
			return m
		}
	}
	return wire.MTU256
}

func (c *conn) postRecv() error {
	return c.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{c.mr.SGE(0, len(c.mr.Bytes()))}})
}

// poll takes completions, spinning or asleep, and refuses failed ones. Asleep it
// returns none after waitStep.
func (c *conn) poll(spin bool) ([]roce.Completion, error) {
	n, err := c.cq.Poll(c.done)
	if n == 0 && err == nil && !spin {
		ctx, cancel := context.WithTimeout(context.Background(), waitStep)
		n, err = c.cq.Wait(ctx, c.done)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, c.device.Err()
		}
	}
	if err == nil {
		err = c.device.Err()
	}
	for _, wc := range c.done[:n] {
		if wc.Status != roce.StatusSuccess {
			return nil, fmt.Errorf("load: completion with status %v", wc.Status)
		}
	}
	return c.done[:n], err
}

// farewell sends the message that ends rcTarget, and waits until it arrived.
func (c *conn) farewell() error {
	err := c.qp.PostSend(&roce.SendWR{WRID: 1, Opcode: roce.OpSend, Flags: roce.SendSignaled})
	for end := time.Now().Add(5 * time.Second); err == nil; {
		var done []roce.Completion
		done, err = c.poll(true)
		for _, wc := range done {
			if wc.WRID == 1 {
				return nil
			}
		}
		if time.Now().After(end) {
			return errors.New("load: the farewell was not acknowledged")
		}
	}
	return err
}

// rcWrite keeps writeDepth WRITEs of one message each in flight.
func rcWrite(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	wr := roce.SendWR{
		Opcode: roce.OpWrite, Flags: roce.SendSignaled,
		SGList:     []roce.SGE{c.mr.SGE(0, o.Message)},
		RemoteAddr: c.remote.addr, RKey: c.remote.rkey,
	}
	var posted, total uint64
	w := worker.NewWindow(o)
	for w.Tick(w.Now(), total) {
		for ; posted-total < writeDepth; posted++ {
			if err := c.qp.PostSend(&wr); err != nil {
				return nil, 0, nil, err
			}
		}
		done, err := c.poll(true)
		if err != nil {
			return nil, 0, nil, err
		}
		total += uint64(len(done))
	}
	return w, total, nil, c.farewell()
}

// rcTarget lets the other end write until it says farewell.
func rcTarget(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	w := worker.NewWindow(o)
	for limit := o.Warmup + o.Window + 5*time.Second; w.Now() < limit; {
		w.Tick(w.Now(), 0)
		done, err := c.poll(false)
		if err != nil {
			return nil, 0, nil, err
		}
		if len(done) > 0 {
			c.linger()
			w.Tick(limit, 0)
			return w, 0, nil, nil
		}
	}
	return nil, 0, nil, errors.New("load: the writer never said farewell")
}

// linger acknowledges what the peer may still send again.
func (c *conn) linger() {
	for end := time.Now().Add(worker.Quiet); time.Now().Before(end); {
		// What fails now, fails because the peer is gone, which is what we wait for.
		_, _ = c.poll(false)
	}
}

// rcSend sends messages, with a completion for every signalEvery-th.
func rcSend(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	wr := roce.SendWR{Opcode: roce.OpSend, SGList: []roce.SGE{c.mr.SGE(0, o.Message)}}
	var posted, total uint64
	w := worker.NewWindow(o)
	for w.Tick(w.Now(), total) {
		for range o.Batch {
			wr.Flags = 0
			if (posted+1)%signalEvery == 0 {
				wr.Flags = roce.SendSignaled
			}
			err := c.qp.PostSend(&wr)
			if errors.Is(err, roce.ErrQueueFull) {
				break
			}
			if err != nil {
				return nil, 0, nil, err
			}
			posted++
		}
		done, err := c.poll(true)
		if err != nil {
			return nil, 0, nil, err
		}
		total += signalEvery * uint64(len(done))
	}
	// What is in flight needs this end for its acknowledgements and resends.
	for end := time.Now().Add(worker.Quiet); time.Now().Before(end); {
		if _, err := c.poll(true); err != nil {
			return nil, 0, nil, err
		}
	}
	return w, total, nil, nil
}

// rcRecv receives messages until none came for a while.
func rcRecv(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	return c.serve(o, false)
}

// rcEcho answers each message with one of its length, spinning.
func rcEcho(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	return c.serve(o, true)
}

func (c *conn) serve(o worker.Options, answer bool) (
	*worker.Window, uint64, *worker.RTT, error,
) {
	reply := roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled,
		SGList: []roce.SGE{c.mr.SGE(0, o.Message)},
	}
	var total uint64
	w := worker.NewWindow(o)
	last := w.Now()
	for {
		now := w.Now()
		open := w.Tick(now, total)
		done, err := c.poll(answer && open)
		if err != nil {
			return nil, 0, nil, err
		}
		for _, wc := range done {
			if wc.Opcode != roce.WCRecv {
				continue
			}
			total++
			last = now
			err = c.postRecv()
			if err == nil && answer {
				err = c.qp.PostSend(&reply)
			}
			if err != nil {
				return nil, 0, nil, err
			}
		}
		if !open && len(done) == 0 && now-last > 2*worker.Quiet {
			return w, total, nil, nil
		}
	}
}

// rcPing sends a message and waits for the answer, spinning.
func rcPing(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	wr := roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled,
		SGList: []roce.SGE{c.mr.SGE(0, o.Message)},
	}
	hist := hdrhistogram.New(1, int64(10*time.Second), 3)
	var total uint64
	w := worker.NewWindow(o)
	for sent := w.Now(); w.Tick(sent, total); sent = w.Now() {
		if err := c.qp.PostSend(&wr); err != nil {
			return nil, 0, nil, err
		}
		for answered := false; !answered; {
			done, err := c.poll(true)
			if err != nil {
				return nil, 0, nil, err
			}
			for _, wc := range done {
				if wc.Opcode != roce.WCRecv {
					continue
				}
				answered = true
				if err := c.postRecv(); err != nil {
					return nil, 0, nil, err
				}
			}
		}
		total++
		if w.Open() {
			// Retries end long before the histogram does.
			_ = hist.RecordValue((w.Now() - sent).Nanoseconds())
		}
	}
	return w, total, roundTrips(hist), nil
}
