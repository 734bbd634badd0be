package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk"
	"xroce/xsk/xsktest/timeout"
)

// Queue depths, in work requests.
const (
	sendDepth = 512  // of the first queue pair
	recvDepth = 1024 // of the first: more than the peer sends, so that no RNR NAK comes
	manyDepth = 16   // of each queue pair, where there are many
)

// A conn is one end of reliable connections, all on one device, with one buffer
// and one completion queue. What is not a stream over many goes over the first.
type conn struct {
	device *engine.Device
	pd     *engine.PD
	link   *lossyLink // nil for a link as it is
	kept   *kept      // nil where nothing is captured
	qps    []*engine.QP
	qp     *engine.QP // the first
	cq     *engine.CQ // of sends and receives of all
	mr     *engine.MR
	gid    int // index of our address
	locals []engine.Endpoint
	remote card
	// walk is how many bytes of the other end WRITEs go through, 0 for those of one message.
	walk uint64
	done []roce.Completion // room to poll into
	now  func() time.Time
	// recvs are equal receives, to post as many as are wanted.
	recvs []roce.RecvWR
	// call is a receive of a call.
	call roce.RecvWR
	// ratio is what two ways in turn came to.
	ratio float64
	// consumed are the receives of the first queue pair that refill owes.
	consumed uint64

	naps []context.Context // bound the sleeps, one after the other
	ends []context.CancelFunc
}

// openConn opens a device as the mode and the options want it, and creates the
// queue pairs.
func openConn(o worker.Options, background bool) (*conn, error) {
	c := &conn{done: make([]roce.Completion, 64), now: time.Now}
	options := engine.Options{Mode: xsk.ModeCopy, Direct: !background, Queues: []int{o.Queue}}
	if background {
		options.Spin = 1 // nanosecond: no idle spinning
		options.Busy = strings.HasSuffix(o.Mode, "-busy")
	}
	var err error
	if o.Seed != 0 {
		c.device, c.link, err = openLossy(o, options)
	} else {
		c.device, err = engine.Open(o.Interface, options)
	}
	if err != nil {
		return nil, err
	}
	if o.Capture != "" {
		if c.kept, err = keep(c.device, o.Capture); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	if err := c.create(o); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	for _, end := range c.ends {
		end()
	}
	var err error
	if c.kept != nil {
		err = c.kept.close()
	}
	return errors.Join(err, c.device.Close())
}

func (c *conn) create(o worker.Options) error {
	n := max(1, o.QPs)
	var err error
	if c.cq, err = c.device.CreateCQ(2*(sendDepth+recvDepth) + manyDepth*n); err != nil {
		return err
	}
	c.pd = c.device.AllocPD()
	access := mem.LocalWrite | mem.RemoteWrite
	if err := c.register(c.pd, o, access); err != nil {
		return err
	}
	if c.gid, err = c.findGID(o); err != nil {
		return err
	}
	init := engine.QPInit{
		SendCQ: c.cq, RecvCQ: c.cq, MaxSendWR: sendDepth, MaxRecvWR: recvDepth,
		MaxSendSGE: 1, MaxRecvSGE: 1,
	}
	if o.Block > 0 {
		init.MaxSendSGE = blockSGEs
	}
	for range n {
		qp, err := c.device.CreateQP(c.pd, init)
		if err != nil {
			return err
		}
		c.qps = append(c.qps, qp)
		err = qp.Modify(&roce.Attr{State: roce.StateInit, Port: 1, Access: access},
			roce.AttrState|roce.AttrPort|roce.AttrPKeyIndex|roce.AttrAccess)
		if err != nil {
			return err
		}
		local, err := c.device.Endpoint(qp, c.gid)
		if err != nil {
			return err
		}
		c.locals = append(c.locals, local)
		init.MaxSendWR, init.MaxRecvWR = manyDepth, manyDepth
	}
	c.qp = c.qps[0]
	return c.postRecvs(recvDepth)
}

// findGID is the index of our IPv4 address.
func (c *conn) findGID(o worker.Options) (int, error) {
	for i, gid := range c.device.GIDs() {
		if gid.Addr().String() == o.Local {
			return i, nil
		}
	}
	return 0, fmt.Errorf("load: %s has no GID for %s", o.Interface, o.Local)
}

// card is what the other end must know.
func (c *conn) card() card {
	mine := card{rkey: c.mr.RKey(), addr: c.mr.Addr(), gid: c.locals[0].GID.Addr()}
	for _, l := range c.locals {
		mine.qps = append(mine.qps, pairCard{l.QPN, l.PSN})
	}
	return mine
}

// connect connects each queue pair with its fellow on the other end's card.
func (c *conn) connect(o worker.Options, peer string) error {
	var err error
	if c.remote, err = parseCard(peer); err != nil {
		return err
	}
	if len(c.remote.qps) != len(c.qps) {
		return fmt.Errorf("load: the peer has %d queue pairs, we %d", len(c.remote.qps), len(c.qps))
	}
	options := connectOptions(o)
	options.SGIDIndex = c.gid
	ctx, cancel := context.WithTimeout(context.Background(), timeout.Scaled(10*time.Second))
	defer cancel()
	gid := wire.GIDFromAddr(c.remote.gid)
	for i, remote := range c.remote.qps {
		local := c.locals[i]
		local.Extensions = c.extensionsOf(o, i)
		err := c.qps[i].Connect(ctx, local, engine.Endpoint{
			QPN: remote.qpn, PSN: remote.psn, GID: gid, Extensions: local.Extensions,
		}, options)
		if err != nil {
			return err
		}
	}
	return nil
}

// lossyTimeout is the local ACK timeout where packets are lost on purpose: 4.096 µs
// × 2^10 is 4 ms. With the default of 67 ms the timeouts, which only a NAK or a
// resent packet that is lost makes, would be all that is measured; with much less
// a peer that is not scheduled for some 30 ms is given up after seven retries.
const lossyTimeout = 10

// usualTimeout is the timeout elsewhere, a quarter of a second: on a machine that
// others use, what is in flight may wait for longer than the usual 67 ms, and
// nothing else makes a timeout.
const usualTimeout = 16

// longestTimeout bounds both for an end with patience: 4 s, so half a minute with all retries.
const longestTimeout = 20

// connectOptions are the attributes of all connections of a run.
func connectOptions(o worker.Options) engine.ConnectOptions {
	options := engine.ConnectOptions{PathMTU: pathMTU(o.Size), Timeout: usualTimeout}
	if o.Seed != 0 {
		options.Timeout = lossyTimeout
	}
	options.Timeout = uint8(min(int(options.Timeout)+o.Patience, longestTimeout))
	return options
}

// piggyback is how modes end in which acknowledges ride on requests.
const piggyback = "-piggyback"

// extensions are those of a run, at both ends.
func extensions(o worker.Options) roce.Extensions {
	if o.Selective {
		return roce.ExtSelectiveRepeat
	}
	if strings.HasSuffix(o.Mode, piggyback) {
		return roce.ExtPiggybackAck
	}
	return 0
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

// postRecvs posts n receives as lists.
func (c *conn) postRecvs(n uint64) error {
	if c.recvs == nil {
		wr := roce.RecvWR{SGList: []roce.SGE{c.mr.SGE(0, len(c.mr.Bytes()))}}
		c.recvs = slices.Repeat([]roce.RecvWR{wr}, recvDepth)
	}
	_, err := c.qp.PostRecvs(c.recvs[:n])
	return err
}

// newWindow plans the window, and sleeps that end shortly behind its borders, so
// that they are seen. A context allocates, so it is made before.
func (c *conn) newWindow(o worker.Options) *worker.Window {
	w := worker.NewWindow(o)
	c.naps = nil
	c.addNap(o.Warmup + waitStep)
	c.addNap(o.Warmup + o.Window + 2*waitStep)
	return w
}

func (c *conn) addNap(d time.Duration) {
	nap, end := context.WithTimeout(context.Background(), d)
	c.naps, c.ends = append(c.naps, nap), append(c.ends, end)
}

// poll takes completions, or none, and refuses failed ones.
func (c *conn) poll() ([]roce.Completion, error) {
	n, err := c.cq.Poll(c.done)
	if err == nil && c.device.Failed() {
		err = c.device.Err()
	}
	return c.check(n, err)
}

// wait is poll asleep. It returns none at the ends of the planned naps, and after
// waitStep when there are none left.
func (c *conn) wait() ([]roce.Completion, error) {
	if len(c.naps) == 0 {
		c.addNap(waitStep)
	}
	n, err := c.cq.Wait(c.naps[0], c.done)
	if errors.Is(err, context.DeadlineExceeded) {
		c.naps = c.naps[1:]
		err = c.device.Err()
	}
	return c.check(n, err)
}

// errRetries means that the peer did not answer for too long.
var errRetries = errors.New("load: the peer did not answer any retry")

func (c *conn) check(n int, err error) ([]roce.Completion, error) {
	for i := range c.done[:n] {
		switch status := c.done[i].Status; status {
		case roce.StatusSuccess:
		case roce.StatusRetryExcErr:
			return nil, errRetries
		default:
			return nil, fmt.Errorf("load: completion with status %v", status)
		}
	}
	return c.done[:n], err
}

// The messages by which the ends tell each other where they are. They have no
// payload, and a work request number of their own.
const noteID = 1 << 63

// noteLimit is how long the other end may take to connect its queue pairs.
var noteLimit = timeout.Scaled(15 * time.Second)

// note sends a message over the first queue pair, behind what is posted there, and
// waits until it arrived.
func (c *conn) note() error {
	wr := roce.SendWR{WRID: noteID, Opcode: roce.OpSend, Flags: roce.SendSignaled}
	posted := false
	for end := time.Now().Add(noteLimit); time.Now().Before(end); {
		if !posted {
			err := c.qp.PostSend(&wr)
			if err != nil && !errors.Is(err, roce.ErrQueueFull) {
				return err
			}
			posted = err == nil
		}
		done, err := c.poll()
		if err != nil {
			return err
		}
		for i := range done {
			if done[i].WRID == noteID {
				return nil
			}
		}
	}
	return fmt.Errorf("load: a note was not acknowledged within %v", noteLimit)
}

// awaitNote waits for the other end's message.
func (c *conn) awaitNote(limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		done, err := c.wait()
		if err != nil {
			return err
		}
		for _, wc := range done {
			if wc.Opcode == roce.WCRecv {
				return nil
			}
		}
	}
	return fmt.Errorf("load: the other end was silent for %v", limit)
}

// linger acknowledges what the peer may still send again.
func (c *conn) linger() {
	for end := time.Now().Add(worker.Quiet); time.Now().Before(end); {
		// What fails now, fails because the peer is gone, which is what we wait for.
		_, _ = c.wait()
	}
}

// counters are those of the device that counted something, and the losses that
// were made on purpose.
func (c *conn) counters() (map[string]uint64, error) {
	counts, err := deviceCounters(c.device)
	if err != nil {
		return nil, err
	}
	if c.link != nil {
		counts[worker.DroppedOnPurpose] = c.link.dropped.Load()
	}
	if c.kept != nil {
		c.kept.count(counts)
	}
	return counts, nil
}

// deviceCounters are those of a device that counted something.
func deviceCounters(d *engine.Device) (map[string]uint64, error) {
	list, err := d.Counters()
	if err != nil {
		return nil, err
	}
	counts := map[string]uint64{}
	for _, one := range list {
		if one.Value > 0 {
			counts[one.Name] = one.Value
		}
	}
	return counts, nil
}
