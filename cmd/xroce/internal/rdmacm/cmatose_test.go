package rdmacm

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
)

const cmatoseServerSays = `cmatose: starting server
initiating data transfers
completing sends
receiving data transfers
data transfers complete
cmatose: disconnecting
disconnected
test complete
return status 0
`

const cmatoseClientSays = `cmatose: starting client
cmatose: connecting
receiving data transfers
sending replies
data transfers complete
test complete
return status 0
`

func TestCmatose(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct {
		connections, count, size int
		v6                       bool
		tclass                   uint8
		faults                   sim.Faults
	}{
		{connections: 1, count: DefaultCount, size: DefaultSize},
		{connections: 8, count: 3, size: 1},
		{connections: 2, count: 300, size: 5000, v6: true},
		{connections: 1, count: 4, size: 1 << 20, tclass: 0x68},
		{connections: 3, count: 10, size: 3000, faults: sim.Faults{Drop: 0.02, Dup: 0.02}},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			server, client := newRig(t, c.faults)
			ctx := within(t)
			config := Cmatose{
				Addr: anyAt(CmatosePort), Connections: c.connections, Count: c.count, Size: c.size,
				TClass: c.tclass,
			}
			ended := server.begin(t, func() (Result, error) {
				return server.ServeCmatose(ctx, config)
			})
			config.Addr = server.at(c.v6, CmatosePort)
			got, err := client.DialCmatose(ctx, config)
			must(t, err)
			want := Result{Connections: c.connections, Messages: c.connections * c.count}
			if c.faults.Drop > 0 && got.Messages > 0 {
				got.Messages = want.Messages // the last acknowledgement may be lost
			}
			if o := <-ended; o.err != nil || o.Result != want || got != want {
				t.Errorf("client %+v, server %+v, want %+v", got, o, want)
			}
			if client.lines() != cmatoseClientSays || server.lines() != cmatoseServerSays {
				t.Errorf("server:\n%s\nclient:\n%s", server.lines(), client.lines())
			}
		})
	}
}

// Without messages there are only connections.
func TestCmatoseNoMessages(t *testing.T) {
	t.Parallel() // it waits most of the time
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	config := Cmatose{Addr: server.at(false, CmatosePort), Connections: 4}
	ended := server.begin(t, func() (Result, error) { return server.ServeCmatose(ctx, config) })
	got, err := client.DialCmatose(ctx, config)
	must(t, err)
	if o := <-ended; o.err != nil || o.Result != got || got != (Result{Connections: 4}) {
		t.Errorf("client %+v, server %+v", got, o)
	}
}

// Ends that do not agree on the size notice, both.
func TestCmatoseSizesDiffer(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct {
		server, client         int
		serverSays, clientSays string
	}{
		{100, 200, "hung up", "has 100 bytes, not 200"},
		{200, 100, "remote invalid request error", "local length error"},
	} {
		server, client := newRig(t, sim.Faults{})
		ctx := within(t)
		config := Cmatose{
			Addr: server.at(false, CmatosePort), Connections: 1, Count: 1, Size: c.server,
		}
		ended := server.begin(t, func() (Result, error) { return server.ServeCmatose(ctx, config) })
		other := config
		other.Size = c.client
		_, err := client.DialCmatose(ctx, other)
		fails(t, err, c.clientSays)
		fails(t, (<-ended).err, c.serverSays)
	}
}

// A peer that hangs up in the middle is noticed by either end.
func TestCmatosePeerGone(t *testing.T) {
	t.Parallel() // it waits most of the time
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	config := Cmatose{
		Addr: server.at(false, CmatosePort), Connections: 1, Count: 10, Size: 100,
	}
	ended := server.begin(t, func() (Result, error) { return server.ServeCmatose(ctx, config) })
	p, err := client.newTalker(&config, func(s cm.Setup) (*cm.Conn, error) {
		return client.Manager.Dial(ctx, config.Addr, s)
	})
	must(t, err)
	must(t, p.await(ctx, 0, 10))
	p.hangUp(ctx)
	fails(t, (<-ended).err, "hung up")

	ended = server.begin(t, func() (Result, error) { return serveFew(ctx, server, config) })
	_, err = client.DialCmatose(ctx, config)
	fails(t, err, "hung up")
	must(t, (<-ended).err)
}

// A server that has said all and does not hang up, because it lost its power, is not waited
// for for ever.
func TestCmatoseServerSilent(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	client.Silence = 50 * time.Millisecond
	config := Cmatose{Addr: server.at(false, CmatosePort), Connections: 1}
	over := make(chan struct{})
	ended := server.begin(t, func() (Result, error) {
		_, err := server.meetOne(ctx, config)
		<-over
		return Result{}, err
	})
	_, err := client.DialCmatose(ctx, config)
	close(over)
	fails(t, err, "nothing came from the peer for 50ms")
	must(t, (<-ended).err)
}

// TestCostOfTalker: those who ask and may not be there cost no more than they may.
func TestCostOfTalker(t *testing.T) {
	server, _ := newRig(t, sim.Faults{})
	config := Cmatose{Count: roce.MaxWR, Size: 1}
	least := uint64(1) << 62
	for range 5 { // others in the process may allocate, too
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := server.newTalker(&config, func(s cm.Setup) (_ *cm.Conn, err error) {
			s.QP, err = server.Dev.CreateQP(s.PD, s.Init)
			if err == nil {
				s.QP.Close()
			}
			return nil, err
		})
		must(t, err)
		p.free()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	places := server.talkers(new(listener), &config, nil, nil).Places
	if most := uint64(places) * least; most > spareBytes {
		t.Errorf("%d cost %d bytes each", places, least)
	}
}

// TestCmatoseServerLeaves: a server that hangs up before it has taken all is not one that has.
func TestCmatoseServerLeaves(t *testing.T) {
	t.Parallel() // it waits most of the time
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	logged := client.logs()
	config := Cmatose{
		Addr: server.at(false, CmatosePort), Connections: 1, Count: 50, Size: 1000,
	}
	ended := server.begin(t, func() (Result, error) {
		one := config
		one.Count = 1 // it has room for one
		p, err := server.meetOne(ctx, one)
		if err != nil {
			return Result{}, err
		}
		for n := 0; n < config.Count && err == nil; n++ {
			if err = p.send(); err == nil {
				err = p.await(ctx, n+1, 0)
			}
		}
		if err == nil {
			err = p.await(ctx, config.Count, 1)
		}
		p.hangUp(ctx)
		return Result{}, err
	})
	got, err := client.DialCmatose(ctx, config)
	must(t, err)
	must(t, (<-ended).err)
	const says = "the server hung up before it acknowledged all messages"
	if got.Messages >= config.Count || !strings.Contains(logged(), says) {
		t.Errorf("it says %+v, and logs %q", got, logged())
	}
}

// meetOne listens for a client, and connects to it.
func (p *party) meetOne(ctx context.Context, c Cmatose) (*talker, error) {
	l, err := p.listen(c.Addr)
	if err != nil {
		return nil, err
	}
	defer l.close()
	request, err := l.accept(ctx)
	if err != nil {
		return nil, err
	}
	return p.newTalker(&c, func(s cm.Setup) (*cm.Conn, error) { return request.Accept(ctx, s) })
}

// serveFew is a server that sends one message instead of all and hangs up.
func serveFew(ctx context.Context, p *party, c Cmatose) (Result, error) {
	t, err := p.meetOne(ctx, c)
	if err != nil {
		return Result{}, err
	}
	err = t.conn.QP().PostSend(&roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{t.out.SGE(0, t.Size)},
	})
	if err == nil {
		err = t.await(ctx, 1, 0)
	}
	t.hangUp(ctx)
	return Result{}, err
}

func TestCmatoseNobodyListens(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	config := Cmatose{Addr: server.at(false, CmatosePort), Connections: 1}
	_, err := client.DialCmatose(within(t), config)
	fails(t, err, "rejected: ")
}
