package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// device opens a device on a simulated network.
func device(t *testing.T) *engine.Device {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	port, err := network.NewPort(sim.PortConfig{
		Name: "xr1", MAC: [6]byte{2}, MTU: 4200,
		Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.OpenLink(port, port, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// listen starts a server in a directory of the test.
func listen(t *testing.T) (s *Server, dir string) {
	t.Helper()
	return listenFor(t, clientTimeout)
}

// listenFor is listen with another clientTimeout.
func listenFor(t *testing.T, clientTimeout time.Duration) (s *Server, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "xroce")
	s, err := listenWith(dir, clientTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

func TestAsk(t *testing.T) {
	s, dir := listen(t)
	d := device(t)
	s.Add(d)
	pd := d.AllocPD()
	for range 3 {
		if _, err := d.RegMR(pd, make([]byte, 10), mem.LocalWrite); err != nil {
			t.Fatal(err)
		}
	}
	for _, keys := range []bool{false, true} {
		answers, err := Ask(dir, 0, 2, keys)
		if err != nil || len(answers) != 1 || len(answers[0].Devices) != 1 {
			t.Fatalf("%+v, %v", answers, err)
		}
		a, r := answers[0], answers[0].Devices[0]
		if a.PID != os.Getpid() || a.Comm == "" || r.Device != "xr1" || r.Total.MR != 3 ||
			len(r.MRs) != 2 || r.MRs[0].Len != 10 {
			t.Errorf("%+v", answers)
		}
		m := r.MRs[0]
		if has := m.RKey != nil || m.LKey != nil || m.IOVA != nil; has != keys {
			t.Errorf("keys asked %t: %+v", keys, r.MRs[0])
		}
	}
	if answers, err := Ask(dir, os.Getpid()+1, 1, false); err != nil || len(answers) != 0 {
		t.Errorf("another process: %+v, %v", answers, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if answers, err := Ask(dir, os.Getpid(), 1, false); err != nil || len(answers) != 1 ||
		len(answers[0].Devices) != 0 {
		t.Errorf("a closed device: %+v, %v", answers, err)
	}
}

func TestSocketIsPrivateAndGoes(t *testing.T) {
	s, dir := listen(t)
	path := socketOf(dir, os.Getpid())
	for name, want := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

// TestStaleSockets: the sockets of dead processes are skipped and removed; those of
// others that do not listen stay, and what is no socket is left alone.
func TestStaleSockets(t *testing.T) {
	s, dir := listen(t)
	s.Add(device(t))
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{ended.Process.Pid, 1} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketOf(dir, pid), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	for _, name := range []string{"7.sock", "notes.txt", "x.sock"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	answers, err := Ask(dir, 0, 1, false)
	if err != nil || len(answers) != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
	for name, want := range map[string]bool{
		socketOf(dir, ended.Process.Pid): false, socketOf(dir, 1): true,
		filepath.Join(dir, "7.sock"): true, filepath.Join(dir, "notes.txt"): true,
	} {
		if _, err := os.Lstat(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDirectoryOfOthers: a directory that others can enter or made is not used, by
// neither side.
func TestDirectoryOfOthers(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o755)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{open: "others can enter it", link: "no directory"} {
		if s, err := Listen(dir); err == nil || !strings.Contains(err.Error(), want) {
			s.Close()
			t.Errorf("Listen in %s: %v", dir, err)
		}
		if _, err := Ask(dir, 0, 1, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Ask in %s: %v", dir, err)
		}
	}
	if answers, err := Ask(filepath.Join(t.TempDir(), "none"), 0, 1, false); err != nil ||
		len(answers) != 0 {
		t.Errorf("no directory: %v, %v", answers, err)
	}
}

// TestDirectory: the environment decides, and only with a path that is whole.
func TestDirectory(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/somewhere")
	if got := Directory(); got != "/somewhere/xroce" {
		t.Error(got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "relative")
	if got := Directory(); strings.Contains(got, "relative") || !filepath.IsAbs(got) {
		t.Error(got)
	}
}

// talk sends bytes and returns the answer, an empty one when there is none.
func talk(t *testing.T, dir, request string) (a Answer) {
	t.Helper()
	conn, err := net.Dial("unix", socketOf(dir, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = conn.Write([]byte(request)) }() // the server may stop reading
	_ = json.NewDecoder(bufio.NewReader(conn)).Decode(&a)
	return a
}

// TestHostileClients: none of them gets anything, and the next honest one does.
func TestHostileClients(t *testing.T) {
	s, dir := listen(t)
	s.Add(device(t))
	for name, tt := range map[string]struct{ request, want string }{
		"noise":        {"\x00\xff\x00{{{{\n", "not a request"},
		"array":        {"[1,2,3]", "not a request"},
		"another verb": {`{"get":"memory"}`, `no "memory"`},
		"too many":     {`{"get":"resources","rows":65537}`, "65537 rows"},
		"negative":     {`{"get":"resources","rows":-1}`, "-1 rows"},
		"overflow":     {`{"get":"resources","rows":1e99}`, "not a request"},
		"endless":      {`{"get":"` + strings.Repeat("x", 1<<20), "not a request"},
		"deep":         {strings.Repeat("[", 1<<16), "not a request"},
	} {
		if a := talk(t, dir, tt.request); !strings.Contains(a.Error, tt.want) || a.Devices != nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if answers, err := Ask(dir, 0, 1, false); err != nil || len(answers) != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
}

// TestSilentClients: those who ask nothing hold all places, until their time is over;
// Close does not wait for it.
func TestSilentClients(t *testing.T) {
	_, dir := listenFor(t, 200*time.Millisecond)
	for range 3 * maxClients {
		conn, err := net.Dial("unix", socketOf(dir, os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if answers, err := Ask(dir, 0, 1, false); err != nil || len(answers) != 1 {
		t.Errorf("behind silent ones: %+v, %v", answers, err)
	}
	s2, dir2 := listenFor(t, time.Hour)
	conn, err := net.Dial("unix", socketOf(dir2, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := s2.Close(); err != nil { // hangs if it waits for an hour
		t.Error(err)
	}
}

// TestHostileServer: what pretends to be a process is told of, and costs nobody else
// an answer.
func TestHostileServer(t *testing.T) {
	s, dir := listen(t)
	s.Add(device(t))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketOf(dir, 1), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("nonsense\n"))
			conn.Close()
		}
	}()
	answers, err := Ask(dir, 0, 1, false)
	if err == nil || !strings.Contains(err.Error(), "process 1: ") || len(answers) != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
	l.Close()
	<-done
}
