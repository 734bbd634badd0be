package transfer

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/msg"
	"xroce/engine/sim"
)

// offered makes the directory of the server one that has the file under a name.
func (r *rig) offered(t *testing.T, c StoreConfig) {
	t.Helper()
	r.serve(t, c)
	must(t, os.WriteFile(filepath.Join(r.dir, "f"), r.content, 0o640))
}

// TestFetch has a file sent, to a file, a directory and a writer.
func TestFetch(t *testing.T) {
	for _, size := range []int{0, 1, ChunkSize, 2*Slots*ChunkSize + 5} {
		r := newRig(t, size, sim.Faults{})
		r.offered(t, StoreConfig{Read: true})
		stop := r.listen(t.Context(), ReceiveConfig{})
		c, dir := r.client(), t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
		var out bytes.Buffer
		for _, f := range []FetchConfig{
			{To: filepath.Join(dir, "new")}, {To: filepath.Join(dir, "sub")}, {Writer: &out},
		} {
			f.Path = "f"
			result, err := c.Fetch(t.Context(), f)
			if err != nil || result.Size != int64(size) {
				t.Errorf("%+v, %v", result, err)
			}
		}
		_, err := c.Fetch(t.Context(), FetchConfig{Path: "f", To: filepath.Join(dir, "new")})
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("a second time: %v", err)
		}
		c.Close()
		stop()
		for _, name := range []string{"new", "sub/f"} {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(got, r.content) {
				t.Errorf("%s differs, %v", name, err)
			}
		}
		if !bytes.Equal(out.Bytes(), r.content) {
			t.Errorf("%d bytes were written, and differ", out.Len())
		}
		r.settled(t, server)
	}
}

// TestFetchGoesOn after the connection was lost, to a file and to a writer.
func TestFetchGoesOn(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 4*Slots*ChunkSize+5, sim.Faults{})
	r.offered(t, StoreConfig{Read: true})
	stop := r.listen(t.Context(), ReceiveConfig{})
	dir := t.TempDir()
	var out bytes.Buffer
	for _, f := range []FetchConfig{
		{To: filepath.Join(dir, "f"), Keep: time.Hour}, {Writer: &out},
	} {
		c := r.client()
		c.Retry = time.Hour
		c.patience = patience{
			exchange: ordinary.exchange, chunk: time.Second, digest: ordinary.digest,
			work: ordinary.work,
		}
		c.Lost = func(error) { must(t, r.network.SetFaults(sim.Faults{})) }
		cut := false
		f.Path, f.Progress = "f", func(int64, int64) {
			if !cut {
				cut = true
				must(t, r.network.SetFaults(sim.Faults{Drop: 1}))
			}
		}
		result, err := c.Fetch(t.Context(), f)
		c.Close()
		if err != nil || result.Resumed == 0 {
			t.Errorf("%+v, %v", result, err)
		}
	}
	stop()
	got, err := os.ReadFile(filepath.Join(dir, "f"))
	if err != nil || !bytes.Equal(got, r.content) || !bytes.Equal(out.Bytes(), r.content) {
		t.Errorf("the file differs, %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("in the directory: %v, %v", entries, err)
	}
}

// TestFetchClearsItsDirectory of parts that nobody has gone on with for long, and no other one.
func TestFetchClearsItsDirectory(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	r.offered(t, StoreConfig{Read: true})
	stop := r.listen(t.Context(), ReceiveConfig{})
	dir, now := t.TempDir(), time.Now()
	long := now.Add(-2 * time.Hour)
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	part := func(in, letter string, at time.Time) string {
		name := filepath.Join(dir, in, partPrefix+strings.Repeat(letter, 26)+partSuffix)
		must(t, os.WriteFile(name, nil, 0o600))
		must(t, os.Chtimes(name, at, at))
		return name
	}
	old, recent, other := part("", "A", long), part("", "B", now), part("sub", "A", long)
	c := r.client()
	_, err := c.Fetch(t.Context(), FetchConfig{
		Path: "f", To: filepath.Join(dir, "f"), Keep: time.Hour,
	})
	must(t, err)
	c.Close()
	stop()
	for name, stays := range map[string]bool{old: false, recent: true, other: true} {
		if _, err := os.Stat(name); stays != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnlyWhatMayBeRead is sent: nothing without leave, and with it no more than may be written.
func TestOnlyWhatMayBeRead(t *testing.T) {
	s, _, _ := store(t, StoreConfig{})
	if _, _, err := s.open(t.Context(), "file"); !errors.Is(err, ErrNoReading) {
		t.Error(err)
	}
	s, dir, _ := store(t, StoreConfig{Read: true})
	part := partPrefix + strings.Repeat("A", 26) + partSuffix
	must(t, os.WriteFile(filepath.Join(dir, part), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, ".hidden", "x"), nil, 0o600))
	for name, want := range map[string]error{
		"file": nil, "../x": ErrPath, "/etc/passwd": ErrPath, "": ErrPath, "..": ErrPath,
		"sub/../file": ErrPath, part: ErrPath, ".hidden/x": ErrPath, "a\nb": ErrPath,
		"missing": unix.ENOENT, "tofile": unix.ELOOP, "out/secret": unix.ENOTDIR,
		"tonew": unix.ELOOP, "tosub/x": unix.ENOTDIR, "file/x": unix.ENOTDIR,
		strings.Repeat("x", maxPath+1): ErrPath,
	} {
		file, _, err := s.open(t.Context(), name)
		if !errors.Is(err, want) {
			t.Errorf("%.40q: %v, not %v", name, err, want)
		}
		if file != nil {
			file.Close()
		}
	}
	for _, name := range []string{"sub", "fifo", "."} {
		if _, _, err := s.open(t.Context(), name); err == nil {
			t.Errorf("%s is sent", name)
		}
	}
}

// TestReadingNeedsTheToken: who does not know it has nothing sent.
func TestReadingNeedsTheToken(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	r.offered(t, StoreConfig{Read: true})
	stop := r.listen(t.Context(), ReceiveConfig{Token: right})
	for _, token := range []Token{nil, wrong} {
		c := r.client()
		c.Token = token
		var out bytes.Buffer
		_, err := c.Fetch(t.Context(), FetchConfig{Path: "f", Writer: &out})
		c.Close()
		if !errors.Is(err, ErrToken) && !errors.Is(err, ErrPeer) || out.Len() > 0 {
			t.Errorf("%v, and %d bytes", err, out.Len())
		}
	}
	stop()
}

// TestHostileGivers are servers that send other than they said: the client ends with an error,
// and no file is made.
func TestHostileGivers(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 0, sim.Faults{})
	dir := t.TempDir()
	for name, c := range map[string]struct {
		offer  message
		chunks []int
		want   string
	}{
		"negative":   {message{Size: -1}, nil, "it offers -1 bytes"},
		"huge":       {message{Size: MaxSize + 1}, nil, "it offers"},
		"more":       {message{Size: 5}, []int{6}, "it sent more than the 5 bytes"},
		"less":       {message{Size: 5}, []int{4}, "it ended after 4 of 5 bytes"},
		"long":       {message{Size: 5}, []int{ChunkSize + 1}, "a chunk of 1048577 bytes"},
		"other data": {message{Size: 5}, []int{5}, "SHA-256 differs"},
		"nothing":    {message{Size: 5}, nil, peer.ErrSilence.Error()},
		"no space":   {message{Size: MaxSize}, nil, "no space left"},
	} {
		t.Run(name, func(t *testing.T) {
			done := r.play(t, func(link *Link) {
				hearOffer(link)
				sayMessage(link, c.offer)
				said := hearAll(link)
				sayMessage(link, message{})
				for _, n := range c.chunks {
					_ = link.post(&msg.Send{Buffers: [][]byte{make([]byte, n)}}, tagData)
				}
				if len(c.chunks) > 0 {
					sayMessage(link, message{SHA256: "00"})
				}
				<-said
			})
			p := ordinary
			if c.chunks == nil {
				p.chunk = impatient.chunk
			}
			client := r.client()
			client.patience = p
			_, err := client.Fetch(t.Context(), FetchConfig{
				Path: "f", To: filepath.Join(dir, "f"),
			})
			client.Close()
			<-done
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: no %q", err, c.want)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 0 {
				t.Errorf("left in the directory: %v, %v", entries, err)
			}
			r.settled(t, 0)
		})
	}
}
