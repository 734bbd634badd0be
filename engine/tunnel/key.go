package tunnel

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/flynn/noise"

	"xroce/encap/seal"
)

// Bounds of a pre-shared key in bytes.
const (
	MinKey = 16
	maxKey = 4 << 10
)

// A Key is a secret that both ends know, nil for none: then nothing is encrypted. Who knows it
// can be any of the ends.
type Key struct{ psk []byte }

// ErrKey says that two ends do not have the same key, or that one has none.
var ErrKey = errors.New("tunnel: key")

// ParseKey takes a key from text, without the white space around it. It is to be random, 32
// bytes or their text: who records packets may try words at leisure.
func ParseKey(text []byte) (*Key, error) {
	secret := bytes.TrimSpace(text)
	if len(secret) < MinKey || len(secret) > maxKey {
		return nil, fmt.Errorf("%w of %d bytes, and it must have %d to %d: make one with "+
			"'head -c 32 /dev/urandom | base64'", ErrKey, len(secret), MinKey, maxKey)
	}
	psk, err := hkdf.Key(sha256.New, secret, nil, "xroce tunnel 1 psk", seal.KeyLen)
	if err != nil {
		return nil, err
	}
	return &Key{psk}, nil
}

// Ends agree on keys by Noise_NNpsk0_25519_AESGCM_SHA256 in the private data of the connection
// manager, behind their hellos: who asks is the initiator, and the key is for what it sends from
// then on. The payload of the first message is the time, and that of the second the index of
// the key and the hello again. The prologue has the hello of who asks, and the proof of his
// address if he sends one, which nobody else can use then.
const (
	askPayload    = 8
	answerPayload = 4 + helloLen
	ephemeralLen  = 32
	askLen        = ephemeralLen + askPayload + seal.TagLen
	answerLen     = ephemeralLen + answerPayload + seal.TagLen

	prologue = "xroce tunnel 1"
)

// suite is what the handshake is made of.
var suite = noise.NewCipherSuite(noise.DH25519, noise.CipherAESGCM, noise.HashSHA256)

// handshake begins one, after a hello and a cookie, 0 for none.
func (k *Key) handshake(
	initiator bool, hello []byte, cookie uint32,
) (*noise.HandshakeState, error) {
	before := append([]byte(prologue), hello...)
	if cookie != 0 {
		before = binary.BigEndian.AppendUint32(before, cookie)
	}
	return noise.NewHandshakeState(noise.Config{
		CipherSuite: suite, Random: rand.Reader, Pattern: noise.HandshakeNN,
		Initiator: initiator, Prologue: before, PresharedKey: k.psk,
	})
}

// ask is what we tell a peer that we ask, with the cookie that it gave us behind it, 0 for none,
// and what remembers it until the answer comes.
func (t *Tunnel) ask(
	h *hello, cookie uint32,
) (private []byte, state *noise.HandshakeState, err error) {
	private = h.put()
	if t.config.Key != nil {
		if state, err = t.config.Key.handshake(true, private, cookie); err != nil {
			return nil, nil, err
		}
		now := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
		private, _, _, err = state.WriteMessage(private, now)
	}
	return binary.BigEndian.AppendUint32(private, cookie), state, err
}

// cookieOff is where the cookie is in what a peer asks.
func (t *Tunnel) cookieOff() int {
	if t.config.Key == nil {
		return t.hello.len()
	}
	return helloLen + askLen
}

// answered reads what a peer answered: its hello, and with a key the sealer for what we send.
func (t *Tunnel) answered(
	state *noise.HandshakeState, private []byte,
) (their hello, sealer *seal.Sealer, err error) {
	if their, err = parseHello(private); err == nil {
		err = t.hello.agrees(&their)
	}
	if err != nil || state == nil {
		return their, nil, err
	}
	if len(private) < helloLen+answerLen {
		return their, nil, fmt.Errorf("%w: an answer of %d bytes", ErrKey, len(private))
	}
	payload, send, _, err := state.ReadMessage(nil, private[helloLen:][:answerLen])
	if err != nil || !bytes.Equal(payload[4:], private[:helloLen]) {
		return their, nil, fmt.Errorf("%w: that of the peer is another one", ErrKey)
	}
	return their, seal.NewSealer(send.UnsafeKey(), binary.BigEndian.Uint32(payload)), nil
}

// A session is a key by which a peer sends.
type session struct {
	index  uint32
	opener *seal.Opener
}

// sessions are those of a peer over UD. The one before the newest is for what is under way.
type sessions struct {
	mu        sync.Mutex
	list      [2]*session // the newest first
	asked     asks
	ask, last []byte // by what, and what was answered
}

// find finds a session by its index.
func (s *sessions) find(index uint32) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.list {
		if e != nil && e.index == index {
			return e
		}
	}
	return nil
}

// answer answers a peer that asks, and returns the session in which it sends then, nil without a
// key. What was asked before, by whoever recorded it, is refused; over UD the same asked once more,
// as when the answer was lost, is answered the same. A request of a connection comes here once.
func (t *Tunnel) answer(p *peer, private []byte) (answer []byte, _ *session, err error) {
	answer = t.greeting(p).put()
	if t.config.Key == nil {
		return answer, nil, nil
	}
	if len(private) < helloLen+askLen {
		return answer, nil, fmt.Errorf("%w: %d bytes ask", ErrKey, len(private))
	}
	end := helloLen + askLen
	ask := private[:min(len(private), end+cookieLen)]
	s := &p.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Equal(ask, s.ask) && !t.config.Over.connected() {
		return s.last, s.list[0], nil
	}
	cookie := cookieOf(private, t.cookieOff())
	state, err := t.config.Key.handshake(false, private[:helloLen], cookie)
	if err != nil {
		return answer, nil, err
	}
	payload, _, _, err := state.ReadMessage(nil, ask[helloLen:end])
	if err != nil || len(payload) != askPayload {
		return answer, nil, fmt.Errorf("%w: that of the peer is another one", ErrKey)
	}
	asked := binary.BigEndian.Uint64(payload)
	if !s.asked.isNew(asked) {
		return answer, nil, fmt.Errorf("%w: asked again by somebody", ErrKey)
	}
	var index [4]byte
	rand.Read(index[:]) // never fails
	full, receive, _, err := state.WriteMessage(answer, append(index[:], answer...))
	if err != nil {
		return answer, nil, err
	}
	e := &session{binary.BigEndian.Uint32(index[:]), seal.NewOpener(receive.UnsafeKey())}
	s.list[0], s.list[1] = e, s.list[0]
	if t.config.Over.connected() {
		s.asked.note(asked)
	} else {
		s.asked.noteLast(asked)
	}
	s.ask, s.last = bytes.Clone(ask), full
	return full, e, nil
}
