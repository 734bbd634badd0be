package transfer

import (
	"os"
	"testing"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// TestSlowDiskHoldsUpOthers: a file system that takes long to say what is free holds up only who
// asks for room, and no file that is coming.
func TestSlowDiskHoldsUpOthers(t *testing.T) {
	s, _, _ := store(t, StoreConfig{})
	p, err := s.create(t.Context(), &message{Path: "x", Name: "n", Size: 4}, Sender{})
	must(t, err)
	began, release := make(chan struct{}), make(chan struct{})
	s.free = func(*os.File) (int64, error) {
		close(began)
		<-release
		return 1 << 40, nil
	}
	other := make(chan error, 1)
	go func() {
		q, err := s.create(t.Context(), &message{Path: "y", Name: "n", Size: 4}, Sender{})
		if err == nil {
			err = q.close()
		}
		other <- err
	}()
	<-began
	wrote := make(chan error, 1)
	go func() { wrote <- p.add([]byte("text")) }()
	select {
	case err := <-wrote:
		must(t, err)
	case <-time.After(timeout.Scaled(10 * time.Second)):
		t.Error("a chunk waits for what another file asks")
	}
	close(release)
	must(t, <-other)
	must(t, p.close())
}
