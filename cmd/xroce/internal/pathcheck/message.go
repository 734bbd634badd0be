package pathcheck

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"xroce/engine"
	"xroce/roce/wire"
)

// Port is the TCP port of a server by default.
const Port = 18516

// version is that of what the ends say to each other.
const version = 1

// Bounds of what a peer may say.
const (
	maxLine = 1 << 14 // bytes of a message
	maxGIDs = 64      // addresses that an end tells
	maxName = 64      // bytes of a name
)

// lineTime is how long a peer may take to say what it was asked, or to take what it is told.
const lineTime = 10 * time.Second

// ErrPeer says that what answers at the port is no such server, or client.
var ErrPeer = errors.New("the other end is no 'xroce check' of this version")

// secretLen is the length of what a datagram must carry to be answered.
const secretLen = 16

// A hello is what the ends say first.
type hello struct {
	Check  int      `json:"xroce_check"` // the version
	Device string   `json:"device"`
	MTU    int      `json:"mtu"` // of the interface, in bytes
	GIDs   []string `json:"gids"`
	// The server's queue pair, and what a datagram to it must carry.
	QPN    uint32 `json:"qpn,omitempty"`
	QKey   uint32 `json:"qkey,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// A request is what a client asks for over TCP.
type request struct {
	Listen int `json:"listen"` // at a TCP port of the tools, for one connection
}

// A report is what a server says later.
type report struct {
	Got    *uint32 `json:"got,omitempty"` // the number of a datagram that came
	Listen *listen `json:"listen,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// A listen is the answer to a request for it.
type listen struct {
	Port  int    `json:"port"`
	Error string `json:"error,omitempty"` // why it does not
}

// greet is the hello of a device.
func greet(dev *engine.Device) hello {
	h := hello{Check: version, Device: dev.Name(), MTU: dev.Port().MTU}
	for _, e := range dev.GIDTable() {
		if e.Type == engine.GIDRoCEv2 && e.VLAN == 0 && !e.GID.IsZero() && len(h.GIDs) < maxGIDs {
			h.GIDs = append(h.GIDs, e.GID.Addr().WithZone("").String())
		}
	}
	return h
}

// gids checks a hello and returns the addresses in it.
func (h *hello) gids() ([]wire.GID, error) {
	switch {
	case h.Check != version:
		return nil, ErrPeer
	case len(h.Device) > maxName, len(h.GIDs) > maxGIDs, h.MTU < 0, h.MTU > 1<<20:
		return nil, fmt.Errorf("%w: it says what cannot be", ErrPeer)
	}
	var list []wire.GID
	for _, s := range h.GIDs {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" || a.IsMulticast() || a.IsUnspecified() {
			return nil, fmt.Errorf("%w: it says that its address is %.64q", ErrPeer, s)
		}
		list = append(list, wire.GIDFromAddr(a))
	}
	return list, nil
}

// secret checks the secret in a hello.
func (h *hello) secret() (s [secretLen]byte, err error) {
	b, err := hex.DecodeString(h.Secret)
	if err != nil || len(b) != secretLen || h.QPN == 0 || h.QPN >= wire.MulticastQP {
		return s, fmt.Errorf("%w: it names no queue pair", ErrPeer)
	}
	return [secretLen]byte(b), nil
}

// A line is a TCP connection as messages.
type line struct {
	conn net.Conn
	r    *bufio.Reader
}

func newLine(conn net.Conn) *line {
	return &line{conn, bufio.NewReaderSize(conn, maxLine)}
}

// say sends a message. It may be called by one goroutine at a time.
func (l *line) say(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(lineTime)); err != nil {
		return err
	}
	_, err = l.conn.Write(append(b, '\n'))
	return err
}

// hear waits for a message, up to a time.
func (l *line) hear(message any, most time.Duration) error {
	if err := l.conn.SetReadDeadline(time.Now().Add(most)); err != nil {
		return err
	}
	b, err := l.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("%w: it says more than %d bytes", ErrPeer, maxLine)
	case errors.Is(err, io.EOF) && len(b) > 0:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	}
	if json.Unmarshal(b, message) != nil {
		return ErrPeer
	}
	return nil
}
