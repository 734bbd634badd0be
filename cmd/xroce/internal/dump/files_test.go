package dump

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xroce/engine/capture"
)

// A script is a Source of so many packets of 1000 bytes, one a second.
type script struct {
	packets int
	n       int
	stopped bool
}

func (s *script) Next() (*capture.Packet, error) {
	if s.n == s.packets || s.stopped {
		return nil, io.EOF
	}
	s.n++
	at := time.Date(2001, 2, 3, 4, 5, s.n, 0, time.Local)
	return &capture.Packet{At: at.UnixNano(), Head: make([]byte, 1000)}, nil
}
func (s *script) Buffered() bool    { return false }
func (s *script) Interface() string { return "xr0" }
func (s *script) Statistics() (capture.Statistics, bool) {
	return capture.Statistics{Received: 7, Accepted: 6, Dropped: 1}, true
}
func (s *script) Stop() error  { s.stopped = true; return nil }
func (s *script) Close() error { return nil }

// count reads how many packets a file has, which must be whole.
func count(t *testing.T, name string) (n int) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := capture.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, err = r.Next(); err == nil; _, err = r.Next() {
		n++
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("%s: %v", name, err)
	}
	return n
}

// TestStrftime: names have the time as date(1) of the C locale tells it.
func TestStrftime(t *testing.T) {
	const all = "%a %A %b %B %c %C %d %D %e %F %g %G %h %H %I %j %k %l %m %M %n %p %P %r %R " +
		"%s %S %t %T %u %U %V %w %W %x %X %y %Y %z %Z %%"
	if err := CheckName(all); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 1, 981173106, 1009843199, 1199145600, 1230768000, 1735621200} {
		cmd := exec.Command("date", "-u", "-d", fmt.Sprint("@", at), "+"+all)
		cmd.Env = []string{"LC_ALL=C"}
		out, err := cmd.Output()
		if err != nil {
			t.Skip("date of coreutils is not here: ", err)
		}
		got, timed := strftime(all, time.Unix(at, 0).UTC())
		if want := strings.TrimSuffix(string(out), "\n"); got != want || !timed {
			t.Errorf("%d:\n%q\n%q", at, got, want)
		}
	}
	if got, timed := strftime("100%%", time.Now()); got != "100%" || timed {
		t.Errorf("%q, %t", got, timed)
	}
	for _, wrong := range []string{"%Q", "a%", "%5Y", "%E"} {
		if CheckName(wrong) == nil {
			t.Errorf("%q is right", wrong)
		}
	}
}

// TestFiles: files begin and end as those of tcpdump do.
func TestFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		files Files
		take  uint64
		want  []string // names, and
		n     []int    // how many packets each has
	}{
		"one":  {Files{Name: "f"}, 0, []string{"f"}, []int{10}},
		"some": {Files{Name: "f"}, 4, []string{"f"}, []int{4}},
		"size": {
			Files{Name: "f", Size: 2000},
			0,
			[]string{"f", "f1", "f2", "f3", "f4"},
			[]int{2, 2, 2, 2, 2},
		},
		"ring": {
			Files{Name: "f", Size: 2000, Count: 3},
			0,
			[]string{"f0", "f1", "f2"},
			[]int{2, 2, 2},
		},
		"time": {
			Files{Name: "%H%M%S", Every: 4 * time.Second},
			0,
			[]string{"040501", "040505", "040509"},
			[]int{4, 4, 2},
		},
		"time, so many": {
			Files{Name: "%H%M%S", Every: 4 * time.Second, Count: 2},
			0,
			[]string{"040501", "040505"},
			[]int{4, 4},
		},
		"time by the day": {
			Files{Name: "f-%F-%T%%", Every: 4 * time.Second},
			0,
			[]string{"f-2001-02-03-04:05:01%", "f-2001-02-03-04:05:05%", "f-2001-02-03-04:05:09%"},
			[]int{4, 4, 2},
		},
		"time, only a percent": {
			Files{Name: "f%%", Every: 4 * time.Second},
			0,
			[]string{"f%", "f%1", "f%2"},
			[]int{4, 4, 2},
		},
		"size, in each time": {
			Files{Name: "%M%S-", Size: 2000, Every: 4 * time.Second},
			0,
			[]string{"0501-", "0501-1", "0505-", "0505-1", "0509-"},
			[]int{2, 2, 2, 2, 2},
		},
		"ring, in each time": {
			Files{Name: "%M%S-", Size: 1000, Every: 5 * time.Second, Count: 2},
			0,
			[]string{"0501-0", "0501-1", "0506-0", "0506-1"},
			[]int{1, 1, 1, 1},
		},
		"size and time, no name": {
			Files{Name: "f", Size: 2000, Every: 4 * time.Second},
			0,
			[]string{"f", "f1", "f2", "f3", "f4"},
			[]int{2, 2, 2, 2, 2},
		},
		// That of tcpdump begins with 0 at each time, whatever is the oldest.
		"ring and time, no name": {
			Files{Name: "f", Size: 2000, Every: 5 * time.Second, Count: 2},
			0,
			[]string{"f0", "f1"},
			[]int{2, 1},
		},
		"ring of one": {Files{Name: "f", Size: 2000, Count: 1}, 0, []string{"f"}, []int{2}},
		"time, no name": {
			Files{Name: "f", Every: 4 * time.Second},
			0,
			[]string{"f", "f1", "f2"},
			[]int{4, 4, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tt.files.Name = filepath.Join(dir, tt.files.Name)
			w, err := NewFiles(tt.files, "xr0", 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Run(&script{packets: 10}, w, tt.take); err != nil {
				t.Fatal(err)
			}
			found, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range found {
				found[i] = filepath.Base(found[i])
			}
			if !slices.Equal(found, tt.want) {
				t.Fatalf("files %q, want %q", found, tt.want)
			}
			for i, name := range found {
				if n := count(t, filepath.Join(dir, name)); n != tt.n[i] {
					t.Errorf("%s has %d packets, want %d", name, n, tt.n[i])
				}
			}
		})
	}
}

// cutShort is a source that ends without a word, before which packets were missing.
type cutShort struct{ script }

func (s *cutShort) Next() (*capture.Packet, error) {
	p, err := s.script.Next()
	if err == nil {
		p.Missing = uint64(s.n)
	}
	return p, err
}

func (s *cutShort) Statistics() (capture.Statistics, bool) { return capture.Statistics{}, false }

// TestMissingOfACutSource: a file says how many are missing also where its source did not.
func TestMissingOfACutSource(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	w, err := NewFiles(Files{Name: name}, "xr0", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(&cutShort{script{packets: 3}}, w, 0); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := capture.NewReader(file)
	for err == nil {
		_, err = r.Next()
	}
	s, known := r.Statistics()
	if !errors.Is(err, io.EOF) || !known || s.Received != 9 || s.Accepted != 9 || s.Dropped != 6 {
		t.Errorf("%+v, %t, %v", s, known, err)
	}
}

// TestNoPacket: a file that no packet came for has the name of now.
func TestNoPacket(t *testing.T) {
	dir := t.TempDir()
	w, err := NewFiles(Files{Name: filepath.Join(dir, "%Y"), Every: time.Hour}, "xr0", 0)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Year()
	if _, err := Run(&script{}, w, 0); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	year, err := strconv.Atoi(filepath.Base(found[0]))
	if err != nil || year < before || year > time.Now().Year() {
		t.Errorf("%s, %v", found[0], err)
	}
}
