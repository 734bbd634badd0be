package transfer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
	"xroce/xsk/xsktest/timeout"
)

// What is said last is heard, however busy the host is; not as late as the other end gives up. Many
// tests wait for a peer that is gone, so a host that is not busy gives it a second.
func init() {
	const most = 8 * time.Second // ordinary.exchange is 10 s
	last := min(timeout.Scaled(time.Second), most)
	closeTime, reasonTime = last, last
}

// Who is who on the network of a rig.
const (
	client = iota
	server
	middle
	nodes
)

// A node is a host with messages.
type node struct {
	dev      *engine.Device
	endpoint *msg.Endpoint
	listener *msg.RequestListener
	at       netip.AddrPort
	idle     engine.ResourceCount // what it has without connections
}

// A rig is three hosts on a simulated network and a directory to receive to.
type rig struct {
	network *sim.Network
	node    [nodes]node
	dir     string
	store   *Store
	file    string
	content []byte
	token   Token // of the client
	retry   time.Duration
}

// quick is a manager that asks again after 0.6 s, gives up after 10 s and forgets after some
// 300 ms. Its queue pairs wait 2.1 s for a peer on a machine that does nothing else, twice as long
// with each bit of the multiplier: for a wire that loses.
var quick = cm.Options{Machine: rcm.Config{
	ResponseTimeout: 17, PacketLifeTime: min(14+uint8(bits.Len(uint(timeout.Multiplier()))), 18),
	AckDelay: 1,
}}

// patient is one that forgets after half a second, and whose queue pairs wait 4.3 s: where nothing
// is lost, what is late is on a machine that is busy.
var patient = cm.Options{Machine: rcm.Config{ResponseTimeout: 15, PacketLifeTime: 16, AckDelay: 1}}

func newRig(t *testing.T, size int, faults sim.Faults) *rig {
	t.Helper()
	return newRigWith(t, size, faults, [nodes]roce.Extensions{})
}

func newRigWith(t *testing.T, size int, faults sim.Faults, ext [nodes]roce.Extensions) *rig {
	t.Helper()
	network, err := sim.NewNetwork(7, engine.NewSystemClock(), faults)
	must(t, err)
	r := &rig{network: network, content: make([]byte, size)}
	for n := range r.node {
		port, err := network.NewPort(sim.PortConfig{
			Name: "xr", MAC: [6]byte{2, 0, 0, 0, 0, byte(n)}, MTU: 4200,
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 1)})},
		})
		must(t, err)
		options := patient
		if faults != (sim.Faults{}) {
			options = quick
		}
		r.node[n].open(t, port, options, ext[n])
	}
	r.serve(t, StoreConfig{})
	_, _ = rand.Read(r.content)
	r.file = filepath.Join(t.TempDir(), "source")
	must(t, os.WriteFile(r.file, r.content, 0o600))
	return r
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper() // only now: it costs more than most of what is checked
		t.Fatal(err)
	}
}

// open opens the device and what it is to have.
func (n *node) open(t *testing.T, port *sim.Port, options cm.Options, ext roce.Extensions) {
	t.Helper()
	var err error
	n.dev, err = engine.OpenLink(port, port, engine.Options{})
	must(t, err)
	t.Cleanup(func() { n.dev.Close() })
	manager, err := cm.Open(n.dev, options)
	must(t, err)
	t.Cleanup(func() { must(t, manager.Close()) })
	n.endpoint, err = msg.Open(n.dev, manager, msg.Options{Extensions: ext})
	must(t, err)
	t.Cleanup(func() { must(t, n.endpoint.Close()) })
	n.at = netip.AddrPortFrom(port.Port().Addrs[0], 7471)
	n.listener, err = n.endpoint.ListenRequests(n.at)
	must(t, err)
	n.idle = n.dev.Resources(0).Total
}

// dial connects to another node.
func (r *rig) dial(ctx context.Context, from, to int) (*Link, error) {
	conn, err := r.node[from].endpoint.Dial(ctx, r.node[to].at)
	if err != nil {
		return nil, err
	}
	return &Link{r.node[from].endpoint, conn}, nil
}

// accept takes a connection.
func (r *rig) accept(ctx context.Context, at int) (*Link, error) {
	request, err := r.node[at].listener.Next(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := request.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return &Link{r.node[at].endpoint, conn}, nil
}

// play has the test be the server of one link. It is over when the channel is closed.
func (r *rig) play(t *testing.T, part func(link *Link)) (over <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		link, err := r.accept(t.Context(), server)
		if err != nil {
			t.Error(err)
			return
		}
		part(link)
	}()
	return done
}

// connect makes both ends of a connection.
func (r *rig) connect(t *testing.T, from, to int) (near, far *Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		var err error
		far, err = r.accept(ctx, to)
		accepted <- err
	}()
	near, err := r.dial(ctx, from, to)
	must(t, errors.Join(err, <-accepted))
	return near, far
}

// settled waits until a node has nothing left of its connections.
func (r *rig) settled(t *testing.T, at int) {
	t.Helper()
	n := &r.node[at]
	for end := time.Now().Add(timeout.Scaled(20 * time.Second)); ; {
		got := n.dev.Resources(0).Total
		if got == n.idle {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left at the device: %+v, and %+v without connections", got, n.idle)
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
}

// serve makes the directory to receive to another one.
func (r *rig) serve(t *testing.T, c StoreConfig) {
	t.Helper()
	r.dir = t.TempDir()
	r.reopen(t, c)
}

// reopen makes another store of the directory, as a server does that starts again.
func (r *rig) reopen(t *testing.T, c StoreConfig) {
	t.Helper()
	store, err := OpenStore(r.dir, c)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	r.store = store
}

// listen takes connections until the returned function is called, which tells what came of
// the files.
func (r *rig) listen(ctx context.Context, c ReceiveConfig) (stop func() []error) {
	c.Store = cmp.Or(c.Store, r.store)
	ctx, cancel := context.WithCancel(ctx)
	accepting, end := context.WithCancel(context.WithoutCancel(ctx))
	var mu sync.Mutex
	var errs []error
	told := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	ended := c.Ended
	c.Ended = func(result Result, err error) {
		told(err)
		if ended != nil {
			ended(result, err)
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			link, err := r.accept(accepting, server)
			if err != nil {
				return
			}
			running.Go(func() {
				defer link.Close()
				inner, giveUp := context.WithCancelCause(ctx)
				defer giveUp(nil)
				config := c
				config.From.GiveUp = giveUp
				if err := Receive(inner, link, config); err != nil {
					told(err)
				}
			})
		}
	})
	return func() []error {
		end()
		running.Wait()
		cancel()
		return errs
	}
}

// client is one that dials the server.
func (r *rig) client() *Client {
	return &Client{
		Token: r.token, Retry: r.retry,
		Dial: func(ctx context.Context) (*Link, error) { return r.dial(ctx, client, server) },
	}
}

// run transfers the file and returns how both ends ended.
func (r *rig) run(
	t *testing.T, send SendConfig, receive ReceiveConfig, sendCtx, receiveCtx context.Context,
) (result Result, sendErr, receiveErr error) {
	t.Helper()
	stop := r.listen(receiveCtx, receive)
	c := r.client()
	send.File = r.file
	result, sendErr = c.Send(sendCtx, send)
	c.Close()
	return result, sendErr, errors.Join(stop()...)
}

// empty fails the test when anything is in the directory.
func (r *rig) empty(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
}
