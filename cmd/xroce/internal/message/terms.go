package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
)

// Terms, what an end is about to do, is the first message of each: JSON.
//
// termsTag marks it, termsVersion is what both have to speak, and maxTerms is how long it may be.
const (
	termsTag     = 1 << 63
	termsVersion = 1
	maxTerms     = 4 << 10
)

// terms are what both ends must have been told alike.
type terms struct {
	Tool       string `json:"tool"`
	Version    int    `json:"version"`
	Test       string `json:"test"`
	Size       int    `json:"size"`
	Reply      int    `json:"reply"`
	Iterations int    `json:"iterations"`
	Warmup     int    `json:"warmup"`
	Peers      int    `json:"peers"`
	Verified   bool   `json:"verified"`
	Protocol   string `json:"protocol"`
}

const tool = "xroce msg"

// terms says what this end is about to do.
func (c *Config) terms() terms {
	t := terms{
		Tool: tool, Version: termsVersion, Test: string(c.Test), Size: c.Size, Reply: c.Reply,
		Iterations: c.Iters, Warmup: c.Warmup, Peers: c.Peers, Verified: !c.Unverified,
		Protocol: c.Protocol.String(),
	}
	if c.Test != RPC {
		t.Reply = 0 // there is none, or the size says it
	}
	return t
}

// Errors of terms.
var (
	// ErrForeign says that the peer speaks messages, but is no end of a test.
	ErrForeign = errors.New("the peer is not xroce msg")
	// ErrMismatch says that the ends were started differently.
	ErrMismatch = errors.New("the ends were started differently")
)

// parseTerms reads what a peer says. The error wraps ErrForeign.
func parseTerms(b []byte) (terms, error) {
	var t terms
	if err := json.Unmarshal(b, &t); err != nil || t.Tool != tool {
		return t, fmt.Errorf("%w, or one of another version: it begins with %s", ErrForeign,
			plain.Brief(fmt.Sprintf("%.60q", b)))
	}
	if t.Version != termsVersion {
		return t, fmt.Errorf("%w of this version: it speaks %d, this end %d", ErrForeign,
			t.Version, termsVersion)
	}
	return t, nil
}

// compare says in what two ends differ. The error wraps ErrMismatch.
func (t *terms) compare(peer *terms) error {
	var here, there []string
	for _, f := range []struct {
		flag        string
		ours, other any
	}{
		{"xroce msg", t.Test, plain.Brief(peer.Test)},
		{"--size", t.Size, peer.Size},
		{"--reply", t.Reply, peer.Reply},
		{"-n", t.Iterations, peer.Iterations},
		{"--warmup", t.Warmup, peer.Warmup},
		{"--peers", t.Peers, peer.Peers},
		{"--protocol", t.Protocol, plain.Brief(peer.Protocol)},
		{"--unverified", !t.Verified, !peer.Verified},
	} {
		if f.ours != f.other {
			here = append(here, fmt.Sprint(f.flag, " ", f.ours))
			there = append(there, fmt.Sprint(f.flag, " ", f.other))
		}
	}
	if here == nil {
		return nil
	}
	return fmt.Errorf("%w: %s here, %s at the peer", ErrMismatch, strings.Join(here, ", "),
		strings.Join(there, ", "))
}

// agree tells the peer of a connection what this end is about to do, and hears what it is. The
// error says in what they differ; both have it, because each tells before it judges.
func (r *run) agree(ctx context.Context, conn *msg.Conn) error {
	within, cancel := context.WithTimeoutCause(ctx, r.setup(), errSetup)
	defer cancel()
	ours := r.config.terms()
	b, err := json.Marshal(ours)
	if err != nil {
		return err
	}
	s := &msg.Send{Buffers: [][]byte{b}, Tag: termsTag, Level: rmsg.Delivered}
	if err := conn.PostSend(s); err != nil {
		return err
	}
	v := &msg.Receive{
		Buffers: [][]byte{make([]byte, maxTerms)}, Tag: termsTag, Mask: ^uint64(0), From: conn,
	}
	if err := r.endpoint.PostReceive(v); err != nil {
		return err
	}
	if err := v.Wait(within); err != nil && !errors.Is(err, msg.ErrTruncated) {
		return cause(within, err)
	}
	if err := s.Wait(within); err != nil {
		return cause(within, err)
	}
	theirs, err := parseTerms(v.Buffers[0][:v.Length])
	if err != nil {
		return err
	}
	return ours.compare(&theirs)
}

// cause is why a wait failed that a context may have ended.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
