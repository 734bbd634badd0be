package transfer

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// TestSlowDiskHoldsUpNobodyElse: a file system that takes long to say what is free holds up who
// asks for room then, and no file that is coming, also one whose size is not known, and nobody who
// asks for room, too.
func TestSlowDiskHoldsUpNobodyElse(t *testing.T) {
	s, _, _ := store(t, StoreConfig{})
	create := func(path string, size int64) (*partial, error) {
		return s.create(t.Context(), &message{Path: path, Name: "n", Size: size}, Sender{})
	}
	sized, err := create("sized", 4)
	must(t, err)
	open, err := create("open", UnknownSize)
	must(t, err)
	began, release := make(chan struct{}), make(chan struct{})
	var any atomic.Bool
	free := s.free
	s.free = func(dir *os.File) (int64, error) {
		if !any.Swap(true) {
			close(began)
			<-release
		}
		return free(dir)
	}
	slow := make(chan error, 1)
	go func() {
		p, err := create("slow", 4)
		if err == nil {
			err = p.close()
		}
		slow <- err
	}()
	<-began
	others := make(chan error, 1)
	go func() {
		p, err := create("other", 4)
		if err == nil {
			err = p.close()
		}
		others <- errors.Join(err, sized.add([]byte("text")), open.add([]byte("text")))
	}()
	select {
	case err := <-others:
		must(t, err)
	case <-time.After(timeout.Scaled(10 * time.Second)):
		t.Error("others wait for what one file asks")
	}
	close(release)
	must(t, <-slow)
	must(t, errors.Join(sized.close(), open.close()))
}

// TestWrittenMeanwhile: what is written, set aside and given back while the file system says what
// is free counts when room is set aside by that.
func TestWrittenMeanwhile(t *testing.T) {
	s, _, _ := store(t, StoreConfig{})
	disk := int64(100) // bytes that are free
	s.free = func(*os.File) (int64, error) { return disk, nil }
	create := func(path string, size int64) (*partial, error) {
		return s.create(t.Context(), &message{Path: path, Name: "n", Size: size}, Sender{})
	}
	first, err := create("first", 50)
	must(t, err)
	s.free = func(*os.File) (int64, error) {
		had := disk
		s.free = func(*os.File) (int64, error) { return disk, nil }
		must(t, first.add(make([]byte, 30))) // is not in what it says
		disk -= 30
		second, err := create("second", 10)
		must(t, err)
		must(t, second.close())
		_, err = create("third", 20)
		must(t, err)
		return had, nil
	}
	// Of 100 bytes 50 are for the first and 20 for the third.
	if _, err := create("x", 31); err == nil {
		t.Error("there is room for 31 bytes more")
	}
	p, err := create("x", 30)
	if err != nil {
		t.Errorf("30 bytes: %v", err)
	} else {
		must(t, p.close())
	}
}

// TestSeenAndWritten: what is written while the file system says what is free, and is in that, is
// no reason to refuse a file for good, and to drop what there is of it.
func TestSeenAndWritten(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	leaveParts(t, s, hostOf("192.0.2.1"), "a")
	disk := int64(100) // bytes that are free
	s.free = func(*os.File) (int64, error) { return disk, nil }
	w, err := s.create(t.Context(), &message{Path: "w", Name: "n", Size: 80}, hostOf("192.0.2.2"))
	must(t, err)
	s.free = func(*os.File) (int64, error) {
		s.free = func(*os.File) (int64, error) { return disk, nil }
		must(t, w.add(make([]byte, 40)))
		disk -= 40
		return disk, nil
	}
	p, err := s.create(t.Context(), &message{Path: "a", Name: "n", Size: 10}, hostOf("192.0.2.1"))
	if err != nil || p.held != 5 {
		t.Fatalf("%v", err)
	}
	onlyParts(t, dir, 2)
	must(t, errors.Join(p.close(), w.close()))
}

// TestRoomIsForWhoDropped: who comes while parts are dropped for another does not get the room, and
// no more parts are dropped than it takes.
func TestRoomIsForWhoDropped(t *testing.T) {
	s, _, _ := store(t, StoreConfig{Keep: time.Hour, MaxFiles: 4})
	leaveParts(t, s, hostOf("192.0.2.1"), "a", "b", "c", "d")
	free, inside := s.free, false
	s.free = func(dir *os.File) (int64, error) {
		if !inside && len(s.kept) < 4 {
			inside = true
			late, err := s.create(t.Context(), &message{Path: "late", Name: "n", Size: 1},
				hostOf("192.0.2.3"))
			must(t, err)
			must(t, late.close())
		}
		return free(dir)
	}
	first, err := s.create(t.Context(), &message{Path: "first", Name: "n", Size: 1},
		hostOf("192.0.2.2"))
	if err != nil || len(s.kept) != 2 {
		t.Fatalf("%v, %d parts are left", err, len(s.kept))
	}
	must(t, first.close())
}
