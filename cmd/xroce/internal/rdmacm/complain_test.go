package rdmacm

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/plain"
)

// TestStrangersFillNoLog: clients that fail, one after the other, have a bounded number of lines.
func TestStrangersFillNoLog(t *testing.T) {
	var log bytes.Buffer
	s := &Station{Log: slog.New(slog.NewTextHandler(&log, nil))}
	ration := plain.Ration{Lines: maxComplaints, Span: 1 << 62}
	const failed = 1000
	for range failed {
		s.complain(&ration, "192.0.2.9:1", errors.New("no text"))
	}
	if n := strings.Count(log.String(), "client failed"); n != maxComplaints {
		t.Errorf("%d lines", n)
	}
	if left := ration.Left(); left != failed-maxComplaints {
		t.Errorf("%d were not told", left)
	}
}
