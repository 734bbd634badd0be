package pathcheck

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// doors are the TCP ports of the tools that are open. One is open for all who asked for it: clients
// at the same time are not in each other's way, and a stranger who asked first keeps it from no
// other.
type doors struct {
	running sync.WaitGroup

	mu   sync.Mutex
	open map[string]*door // by address and port
}

// A door is an open port. Who connects is hung up on.
type door struct {
	of       *doors
	at       string
	listener net.Listener
	guests   []*knocker // for whom it is open
}

// A knocker is a client that has asked for a door, and is to knock.
type knocker struct {
	door *door
	addr netip.Addr
	came chan struct{} // has an element when it did
}

// ask opens a door for a client that is connected to another port of the same address, if it is not
// open. leave must be called.
func (d *doors) ask(ctx context.Context, conn net.Conn, port int) (*knocker, error) {
	client, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	at := net.JoinHostPort(host, strconv.Itoa(port))
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.open[at]
	if o == nil {
		o = &door{of: d, at: at}
		var config net.ListenConfig
		if o.listener, err = config.Listen(ctx, "tcp", at); err != nil {
			return nil, err
		}
		if d.open == nil {
			d.open = map[string]*door{}
		}
		d.open[at] = o
		d.running.Go(o.attend)
	}
	k := &knocker{door: o, addr: client.Addr(), came: make(chan struct{}, 1)}
	o.guests = append(o.guests, k)
	return k, nil
}

// attend hangs up on whoever comes, until the door is closed.
func (o *door) attend() {
	for {
		conn, err := o.listener.Accept()
		if err != nil {
			return // it is closed; else who comes is let in by the kernel, and nobody hears of it
		}
		if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
			o.knock(from.Addr())
		}
		conn.Close()
	}
}

// knock tells one of the clients that are at an address, and did not know, that it came: another
// one there is still to come.
func (o *door) knock(from netip.Addr) {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	for _, k := range o.guests {
		if k.addr != from {
			continue
		}
		select {
		case k.came <- struct{}{}:
			return
		default: // it knows
		}
	}
}

// await waits until the client came, for a while.
func (k *knocker) await(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-k.came:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// leave closes the door if it is for nobody any more.
func (k *knocker) leave() {
	o := k.door
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.guests = slices.DeleteFunc(o.guests, func(other *knocker) bool { return other == k })
	if len(o.guests) > 0 {
		return
	}
	delete(o.of.open, o.at)
	o.listener.Close()
}
