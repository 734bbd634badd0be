package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/transfer"
)

// TestStrangersFillNoLog: whoever may send files, and have some sent, can have as many refused as
// he likes, or hang up in the middle, and has a bounded number of lines logged in a time, and the
// rest counted; who knows a token has them all.
func TestStrangersFillNoLog(t *testing.T) {
	for _, token := range []transfer.Token{nil, transfer.Token(strings.Repeat("t", 16))} {
		now := time.Unix(0, 0)
		var log bytes.Buffer
		a := &app{
			stdout: io.Discard, stderr: &log, now: func() time.Time { return now },
			logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		s := newServer(a, nil, transfer.ReceiveConfig{Token: token}, false)
		const refused = 999
		for i := range refused {
			err := fmt.Errorf("%d: %w", i, transfer.ErrPath)
			switch i % 3 {
			case 0:
				s.ended("192.0.2.9:1", transfer.Result{}, err)
			case 1:
				s.given("192.0.2.9:1", transfer.Result{Path: "x"}, err)
			case 2:
				s.ended("192.0.2.9:1", transfer.Result{Path: "x"}, err)
			}
		}
		lines := strings.Count(log.String(), "level=")
		if want := min(refused, maxComplaints); token == nil && lines != want ||
			token != nil && lines != refused {
			t.Errorf("%d files were refused, and %d lines logged", refused, lines)
		}
		if !errors.Is(s.err, transfer.ErrPath) {
			t.Errorf("the last error is %v", s.err)
		}
		log.Reset()
		now = now.Add(complaintSpan)
		s.ended("192.0.2.9:1", transfer.Result{}, transfer.ErrPath)
		if token == nil {
			contains(t, log.String(), "file not received", fmt.Sprint("times=", refused-lines))
		}
	}
}

// TestKnownIsToldOnce: a file whose verdict is lost again, when it is asked for again, was told of
// when it came.
func TestKnownIsToldOnce(t *testing.T) {
	for _, err := range []error{nil, transfer.ErrLost} {
		var out, log bytes.Buffer
		a := &app{
			stdout: &out, stderr: &log, now: time.Now,
			logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		s := newServer(a, nil, transfer.ReceiveConfig{}, false)
		s.ended("192.0.2.9:1", transfer.Result{Path: "x", Size: 1, Known: true}, err)
		if s.files != 0 || s.bytes != 0 || s.err != nil || out.Len()+log.Len() > 0 {
			t.Errorf("%v: %d files, %d bytes, %v; printed %s%s", err, s.files, s.bytes, s.err, &out,
				&log)
		}
	}
}
