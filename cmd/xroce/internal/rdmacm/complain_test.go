package rdmacm

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/plain"
)

// TestStrangersFillNoLog: clients that fail, one after the other, have a bounded number of lines,
// and so have those that come and go.
func TestStrangersFillNoLog(t *testing.T) {
	const addr = "192.0.2.9:1"
	for line, tell := range map[string]func(*Station, *plain.Ration){
		"client failed": func(s *Station, r *plain.Ration) {
			s.complain(r, addr, errors.New("no text"))
		},
		"client refused": func(s *Station, r *plain.Ration) {
			s.inform(r, "client refused", "address", addr)
		},
	} {
		var log bytes.Buffer
		s := &Station{Log: slog.New(slog.NewTextHandler(&log, nil))}
		ration := plain.Ration{Lines: maxComplaints, Span: 1 << 62}
		const clients = 1000
		for range clients {
			tell(s, &ration)
		}
		if n := strings.Count(log.String(), line); n != maxComplaints {
			t.Errorf("%q: %d lines", line, n)
		}
		if left := ration.Left(); left != clients-maxComplaints {
			t.Errorf("%q: %d were not told", line, left)
		}
	}
}
