package oob

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"xroce/roce/wire"
)

// Port is the TCP port that verbs tools listen on.
const Port = 18515

const (
	// messageLen is the length of a message with its NUL.
	messageLen = len("0000:000000:000000:00000000000000000000000000000000") + 1
	// doneLen is the length of the client's last word, with its NUL.
	doneLen = len("done") + 1
)

// ErrMessage says that the peer sent something else than a message.
var ErrMessage = errors.New("oob: not a connection message")

// An Endpoint is what the two sides tell each other.
type Endpoint struct {
	LID uint16   // 0 on RoCE
	QPN uint32   // 24 bits
	PSN wire.PSN // first PSN that the sender of the message will use
	GID wire.GID
}

// AppendText appends the message without its NUL.
func (e Endpoint) AppendText(b []byte) []byte {
	b = fmt.Appendf(b, "%04x:%06x:%06x:", e.LID, e.QPN, uint32(e.PSN))
	return hex.AppendEncode(b, e.GID[:])
}

// Parse reads a message without its NUL. The error is ErrMessage, also of one with the GID of
// a group: a peer could have us send to all of that.
func Parse(text string) (Endpoint, error) {
	fields := strings.Split(text, ":")
	if len(fields) != 4 || len(fields[0]) != 4 || len(fields[1]) != 6 || len(fields[2]) != 6 {
		return Endpoint{}, fmt.Errorf("%w: %.100q", ErrMessage, text)
	}
	var e Endpoint
	lid, err1 := strconv.ParseUint(fields[0], 16, 16)
	qpn, err2 := strconv.ParseUint(fields[1], 16, 24)
	psn, err3 := strconv.ParseUint(fields[2], 16, 24)
	gid, err4 := hex.DecodeString(fields[3])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return Endpoint{}, fmt.Errorf("%w: %.100q: %w", ErrMessage, text, err)
	}
	if len(gid) != len(e.GID) {
		return Endpoint{}, fmt.Errorf("%w: %.100q", ErrMessage, text)
	}
	e.LID, e.QPN, e.PSN = uint16(lid), uint32(qpn), wire.PSN(psn)
	if copy(e.GID[:], gid); e.GID.IsMulticast() {
		return Endpoint{}, fmt.Errorf("%w: %q has the GID of a group", ErrMessage, text)
	}
	return e, nil
}

// Send writes one message.
func Send(w io.Writer, e Endpoint) error {
	if _, err := w.Write(append(e.AppendText(nil), 0)); err != nil {
		return fmt.Errorf("oob: send: %w", err)
	}
	return nil
}

// Receive reads one message.
func Receive(r io.Reader) (Endpoint, error) {
	var buf [messageLen]byte
	if _, err := io.ReadFull(r, buf[:]); err != nil {
		return Endpoint{}, fmt.Errorf("oob: receive: %w", err)
	}
	return Parse(strings.TrimRight(string(buf[:]), "\x00"))
}

// SendDone tells the server that the client is ready to receive.
func SendDone(w io.Writer) error {
	if _, err := w.Write([]byte("done\x00")); err != nil {
		return fmt.Errorf("oob: send: %w", err)
	}
	return nil
}

// ReceiveDone waits until the client is ready to receive.
func ReceiveDone(r io.Reader) error {
	var buf [doneLen]byte
	if _, err := io.ReadFull(r, buf[:]); err != nil {
		return fmt.Errorf("oob: receive: %w", err)
	}
	if string(buf[:]) != "done\x00" {
		return fmt.Errorf("%w: %q instead of done", ErrMessage, buf)
	}
	return nil
}
