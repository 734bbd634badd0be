package pathcheck

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"xroce/engine"
	"xroce/engine/crowd"
	"xroce/roce"
)

// Bounds of what a server does for its clients.
const (
	maxClients    = 4    // at once
	maxOfAddress  = 2    // of them from one address
	maxDatagrams  = 4096 // of one client, that are answered
	maxAnswerers  = 8    // addresses that datagrams of one client are answered to
	maxListens    = 8    // TCP ports that one client asks for
	sessionTime   = 2 * time.Minute
	greetTime     = time.Second // after which who has not said who he is gives way to anybody
	listenTime    = 5 * time.Second
	datagramHead  = secretLen + 4 // the secret, and the number of the datagram
	smallDatagram = 64            // bytes, less than any path MTU
)

// A Server is the other end of a check. Its fields are set before Serve.
type Server struct {
	Device *engine.Device
	Ports  []int // TCP ports that it may be asked to listen at

	// Ended is told how it went with a client, may be nil. What the error says may have come
	// from the client. It is called by several goroutines.
	Ended func(client netip.AddrPort, answered int, err error)

	now    func() time.Time // for tests, may be nil
	mu     sync.Mutex
	guests []*guest // the one that came first is first
	away   int      // clients that there was no room for

	doors doors
}

// A guest is a client that has a place.
type guest struct {
	addr    netip.Addr
	since   time.Time
	greeted bool        // it has said who it is
	hangUp  func(error) // says why; does not wait
}

// TurnedAway is how many clients there was no room for. It is safe for concurrent use.
func (s *Server) TurnedAway() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

var (
	// errBusy is what a client is told that there is no room for.
	errBusy = errors.New("the server has as many clients as it takes: try again later")
	// errOthers says that a client gave way.
	errOthers = errors.New("others came: try again later")
)

// Serve accepts clients until the context ends or the listener fails. The listener is closed.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	defer s.doors.running.Wait()
	var running sync.WaitGroup
	defer running.Wait()
	defer listener.Close()
	places := make(chan struct{}, 2*maxClients) // also of those who gave way and have not noticed
	for {
		conn, err := listener.Accept()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		places <- struct{}{}
		from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
		attending, hangUp := context.WithCancelCause(ctx)
		g := &guest{addr: from.Addr(), hangUp: hangUp}
		if err != nil || !s.enter(g) {
			// It fits into the buffer of a new connection, so this does not wait.
			_ = newLine(conn).say(report{Error: errBusy.Error()})
			conn.Close()
			hangUp(nil)
			<-places
			continue
		}
		running.Go(func() {
			answered, err := s.attend(attending, conn, g)
			if cause := context.Cause(attending); errors.Is(cause, errOthers) {
				err = cause
			}
			conn.Close()
			hangUp(nil)
			s.leave(g) // who is told that it ended may send the next
			<-places
			if s.Ended != nil {
				s.Ended(from, answered, err)
			}
		})
	}
}

// enter gives a client a place, if there is one. Who does not say who he is gives way to others,
// and so does a client of a host that has more to one of a host that has less, as crowd.Place has
// it: silence keeps nobody out, and two hosts do not keep out a third. Who has just come is about
// to say it, and gives way only to his own.
func (s *Server) enter(g *guest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.since = s.time()
	limits := crowd.Limits{Places: maxClients, Each: maxOfAddress}
	i, ok := crowd.Place(s.guests, limits, g.addr, func(other *guest) (netip.Addr, bool) {
		late := other.addr == g.addr || g.since.Sub(other.since) >= greetTime
		return other.addr, !other.greeted && late
	})
	if !ok {
		s.away++
		return false
	}
	if i >= 0 {
		s.guests[i].hangUp(errOthers)
		s.guests = slices.Delete(s.guests, i, i+1)
	}
	s.guests = append(s.guests, g)
	return true
}

func (s *Server) time() time.Time {
	if s.now == nil {
		return time.Now()
	}
	return s.now()
}

// greeted takes note that a client has said who it is.
func (s *Server) greeted(g *guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.greeted = true
}

func (s *Server) leave(g *guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guests = slices.DeleteFunc(s.guests, func(other *guest) bool { return other == g })
}

// A session is a server's part of one check.
type session struct {
	*Server
	line   *line
	say    sync.Mutex // of what is said
	box    *mailbox
	qkey   uint32
	secret [secretLen]byte
	to     map[engine.AddressVector]*roce.AH
}

// attend serves one client and returns how many datagrams were answered.
func (s *Server) attend(
	ctx context.Context, conn net.Conn, g *guest,
) (answered int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	v := &session{Server: s, line: newLine(conn), to: map[engine.AddressVector]*roce.AH{}}
	var drawn [4]byte
	_, _ = rand.Read(v.secret[:]) // it never fails
	_, _ = rand.Read(drawn[:])
	v.qkey = binary.NativeEndian.Uint32(drawn[:]) >> 1 // its top bit would mean another one
	if v.box, err = newMailbox(s.Device, v.qkey); err != nil {
		return 0, err
	}
	defer v.box.close()
	ours := greet(s.Device)
	ours.QPN, ours.QKey, ours.Secret = v.box.qp.QPN(), v.qkey, hex.EncodeToString(v.secret[:])
	if err := v.line.say(ours); err != nil {
		return 0, err
	}
	var theirs hello
	if err := v.line.hear(&theirs, lineTime); err != nil {
		return 0, err
	}
	if _, err := theirs.gids(); err != nil {
		return 0, err
	}
	s.greeted(g)
	answering, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		answered, err = v.answer(answering)
		if err != nil && answering.Err() == nil {
			conn.Close() // what is said next is heard by nobody
		}
	})
	asked := v.attendRequests(ctx)
	end()
	running.Wait()
	if answering.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		err = asked // the client is done
	}
	return answered, err
}

// attendRequests does what is asked for over TCP, until the client is done.
func (v *session) attendRequests(ctx context.Context) error {
	ports := slices.Clone(v.Ports) // each is opened once for a client
	for range maxListens {
		var r request
		if err := v.line.hear(&r, sessionTime); err != nil {
			return ignoreEOF(err)
		}
		answer := report{Listen: &listen{Port: r.Listen}}
		err := fmt.Errorf("port %d is none of the tools, or was asked for before", r.Listen)
		var k *knocker
		if i := slices.Index(ports, r.Listen); i >= 0 {
			ports = slices.Delete(ports, i, i+1)
			k, err = v.doors.ask(ctx, v.line.conn, r.Listen)
		}
		if err != nil {
			answer.Listen.Error = err.Error()
		}
		if err = v.tell(answer); k != nil {
			if err == nil {
				k.await(ctx, listenTime)
			}
			k.leave()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tell says something that others may say something beside.
func (v *session) tell(r report) error {
	v.say.Lock()
	defer v.say.Unlock()
	return v.line.say(r)
}

// answer says which datagrams of the client came, and sends them back.
func (v *session) answer(ctx context.Context) (answered int, err error) {
	for answered < maxDatagrams {
		d, err := v.box.receive(ctx)
		if err != nil {
			return answered, err
		}
		if len(d.data) < datagramHead ||
			subtle.ConstantTimeCompare(d.data[:secretLen], v.secret[:]) != 1 {
			continue
		}
		number := binary.BigEndian.Uint32(d.data[secretLen:])
		if err := v.tell(report{Got: &number}); err != nil {
			return answered, err
		}
		ah := v.to[d.from]
		if ah == nil {
			if len(v.to) >= maxAnswerers {
				continue
			}
			if ah, err = v.box.handle(ctx, d.from); err != nil {
				if err := v.tell(report{Error: brief(err)}); err != nil {
					return answered, err
				}
				continue
			}
			v.to[d.from] = ah
		}
		err = v.box.send(ctx, ah, d.qpn, v.qkey, d.data[:datagramHead], len(d.data))
		if err != nil {
			return answered, err
		}
		answered++
	}
	return answered, fmt.Errorf("%d datagrams are all that one client has answered", maxDatagrams)
}

// brief is an error that fits a message.
func brief(err error) string {
	s := err.Error()
	return s[:min(len(s), 1024)]
}
