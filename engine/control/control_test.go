package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce/mem"
	"xroce/xsk/xsktest/timeout"
)

// path is that of the socket.
func (s *Server) path() string { return filepath.Join(s.directory.Name(), s.name) }

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

// TestCountQPs: who asks for it has queue pairs count by themselves, and nobody else.
func TestCountQPs(t *testing.T) {
	s, dir := listen(t)
	d := device(t)
	s.Add(d)
	cq, err := d.CreateCQ(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.CreateQP(d.AllocPD(), engine.QPInit{SendCQ: cq, RecvCQ: cq}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		rows, counted int
		ask           Counting
	}{
		{9, 0, CountAsBefore},
		{0, 0, CountEach},
		{1, 1, CountEach},
		{9, 2, CountEach},
		{9, 2, CountAsBefore},
		{0, 0, CountTogether},
		{9, 0, CountAsBefore},
		{9, 2, CountEach},
	} {
		if _, err := AskStatistics(t.Context(), dir, 0, c.rows, c.ask); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, row := range d.Resources(9).QPs {
			if row.Counters != nil {
				n++
			}
		}
		if n != c.counted {
			t.Errorf("%+v: %d queue pairs count", c, n)
		}
	}
	for _, q := range []Request{
		{Get: getResources, CountQPs: true},
		{Get: getResources, CountNoQPs: true},
		{Get: getStatistics, CountQPs: true, CountNoQPs: true},
	} {
		if _, err := askAll(t.Context(), dir, 0, q); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
}

// listen starts a server in a directory of the test.
func listen(t *testing.T) (s *Server, dir string) {
	t.Helper()
	return listenFor(t, timeout.Scaled(time.Minute))
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
		answers, err := Ask(t.Context(), dir, 0, 2, keys)
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
	answers, err := Ask(t.Context(), dir, os.Getpid()+1, 1, false)
	if err != nil || len(answers) != 0 {
		t.Errorf("another process: %+v, %v", answers, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	answers, err = Ask(t.Context(), dir, os.Getpid(), 1, false)
	if err != nil || len(answers) != 1 ||
		len(answers[0].Devices) != 0 {
		t.Errorf("a closed device: %+v, %v", answers, err)
	}
}

func TestSocketIsPrivateAndGoes(t *testing.T) {
	s, dir := listen(t)
	path := s.path()
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

// deaf leaves a socket in a directory at which nobody listens any more.
func deaf(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// TestStaleSockets: the sockets of dead processes are skipped and removed, also when
// their number is that of a living one now; what only looks like one is left alone.
func TestStaleSockets(t *testing.T) {
	s, dir := listen(t)
	s.Add(device(t))
	stale := []string{newName(1), newName(1<<22 + 1), newName(os.Getpid())}
	others := []string{"1.sock", "0-" + stale[0][2:], newPrefix + "AAAA", stale[0] + "x"}
	for _, name := range append(stale, others...) {
		deaf(t, dir, name)
	}
	file := newName(1)
	if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answers, err := Ask(t.Context(), dir, 0, 1, false)
	if err != nil || len(answers) != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
	for _, name := range append(stale, append(others, file)...) {
		_, err := os.Lstat(filepath.Join(dir, name))
		if gone := slices.Contains(stale, name); gone != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTwoOfOneNumber: processes of two PID namespaces may have the same number, and
// both are seen as long as they live.
func TestTwoOfOneNumber(t *testing.T) {
	first, dir := listen(t)
	first.Add(device(t))
	second, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	for want := 2; want >= 0; want-- {
		answers, err := Ask(t.Context(), dir, os.Getpid(), 1, false)
		if err != nil || len(answers) != want {
			t.Errorf("%d of %d: %+v, %v", len(answers), want, answers, err)
		}
		if want > 0 {
			if err := []*Server{second, first}[2-want].Close(); err != nil {
				t.Error(err)
			}
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
		_, err := Ask(t.Context(), dir, 0, 1, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Ask in %s: %v", dir, err)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	if answers, err := Ask(t.Context(), none, 0, 1, false); err != nil || len(answers) != 0 {
		t.Errorf("no directory: %v, %v", answers, err)
	}
}

// TestDirectory: the environment decides for others than root, and only with a path
// that is whole.
func TestDirectory(t *testing.T) {
	for _, xdg := range []string{"/somewhere", "relative", ""} {
		t.Setenv("XDG_RUNTIME_DIR", xdg)
		want := filepath.Join(os.TempDir(), fmt.Sprintf("xroce-%d", os.Geteuid()))
		switch {
		case os.Geteuid() == 0:
			want = "/run/xroce"
		case xdg == "/somewhere":
			want = "/somewhere/xroce"
		}
		if got := Directory(); got != want {
			t.Errorf("%q: %s, not %s", xdg, got, want)
		}
	}
}

// dial connects to a server and asks nothing.
func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", s.path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// pose listens as process 1 does and plays it with each client, until the returned function is
// called, which waits for the end of it.
func pose(t *testing.T, dir string, play func(net.Conn)) (end func()) {
	t.Helper()
	at := &net.UnixAddr{Name: filepath.Join(dir, newName(1)), Net: "unix"}
	l, err := net.ListenUnix("unix", at)
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
			play(conn)
			conn.Close()
		}
	}()
	return func() {
		l.Close()
		<-done
	}
}

// poseAlone is pose in a directory where nobody else is.
func poseAlone(t *testing.T, play func(net.Conn)) (dir string, end func()) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "xroce")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, pose(t, dir, play)
}

// talk sends bytes and returns the answer, an empty one when there is none.
func talk(t *testing.T, s *Server, request string) (a Answer) {
	t.Helper()
	conn := dial(t, s)
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
		"noise":           {"\x00\xff\x00{{{{\n", "not a request"},
		"array":           {"[1,2,3]", "not a request"},
		"another verb":    {`{"version":1,"get":"memory"}`, `no "memory"`},
		"too many":        {`{"version":1,"get":"resources","rows":65537}`, "65537 rows"},
		"negative":        {`{"version":1,"get":"resources","rows":-1}`, "-1 rows"},
		"another version": {`{"version":2,"get":"resources"}`, "version 2, this process speaks 1"},
		"no version":      {`{"get":"resources"}`, "version 0"},
		"no device":       {`{"version":1,"get":"packets","device":"eth7"}`, `no device "eth7"`},
		"snap":            {`{"version":1,"get":"packets","snap":-1}`, "-1 bytes of a packet"},
		"filter": {
			`{"version":1,"get":"packets","filter":"qpn =="}`, "want a number",
		},
		"overflow": {`{"version":1,"get":"resources","rows":1e99}`, "not a request"},
		"endless":  {`{"version":1,"get":"` + strings.Repeat("x", 1<<20), "not a request"},
		"deep":     {strings.Repeat("[", 1<<16), "not a request"},
	} {
		if a := talk(t, s, tt.request); !strings.Contains(a.Error, tt.want) || a.Devices != nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if answers, err := Ask(t.Context(), dir, 0, 1, false); err != nil || len(answers) != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
}

// TestSilentClients: a thousand connections that ask for nothing keep nobody from being answered,
// and all but some of them give way. Close waits for none of them.
func TestSilentClients(t *testing.T) {
	s, dir := listenFor(t, time.Hour)
	var silent []net.Conn
	for range 1000 {
		silent = append(silent, dial(t, s))
	}
	for range 2 * maxClients {
		answers, err := Ask(t.Context(), dir, 0, 1, false)
		if err != nil || len(answers) != 1 {
			t.Fatalf("behind silent ones: %+v, %v", answers, err)
		}
	}
	for _, conn := range silent[:len(silent)-maxWaiting] { // hangs where one is kept
		if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	s.lobby.mu.Lock()
	waiting := len(s.lobby.waiting)
	s.lobby.mu.Unlock()
	if waiting > maxWaiting {
		t.Errorf("%d are kept", waiting)
	}
	if err := s.Close(); err != nil { // hangs if it waits for an hour
		t.Error(err)
	}
}

// TestSilentClientsEnd: who asks for nothing is given up after a while.
func TestSilentClientsEnd(t *testing.T) {
	s, _ := listenFor(t, time.Millisecond)
	conn := dial(t, s)
	var a Answer
	if err := json.NewDecoder(conn).Decode(&a); err == nil && a.Error == "" {
		t.Errorf("%+v", a) // it may be told why, or nothing when that was too slow as well
	}
}

// TestLobby: who has not asked gives way first, then who came first.
func TestLobby(t *testing.T) {
	var l lobby
	pid := 1
	enter := func() *visitor {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		return l.enter(ours, pid)
	}
	gone := func(v *visitor) bool {
		select {
		case <-v.gone:
			return true
		default:
			return false
		}
	}
	first, silent := enter(), enter()
	l.asks(first)
	for len(l.waiting) < maxWaiting {
		l.asks(enter())
	}
	l.asks(enter())
	if !gone(silent) || gone(first) || len(l.waiting) != maxWaiting {
		t.Errorf("%t, %t, %d", gone(silent), gone(first), len(l.waiting))
	}
	last := enter()
	if !gone(first) || gone(last) {
		t.Errorf("%t, %t", gone(first), gone(last))
	}
	l.leave(first) // once more is nothing
	l.leave(last)
	if len(l.waiting) != maxWaiting-1 || gone(last) {
		t.Errorf("%d, %t", len(l.waiting), gone(last))
	}
	// A process that is silent on many connections drives out its own, not one that came before.
	l = lobby{}
	other := enter()
	for pid = 2; len(l.waiting) < maxWaiting; {
		last = enter()
	}
	if enter(); gone(other) || gone(last) || len(l.waiting) != maxWaiting {
		t.Errorf("%t, %t, %d", gone(other), gone(last), len(l.waiting))
	}
}

// TestHostileServer: what pretends to be a process is told of, and costs nobody else
// an answer.
func TestHostileServer(t *testing.T) {
	s, dir := listen(t)
	s.Add(device(t))
	defer pose(t, dir, func(conn net.Conn) { _, _ = conn.Write([]byte("nonsense\n")) })()
	answers, err := Ask(t.Context(), dir, 0, 1, false)
	if err == nil || !strings.Contains(err.Error(), "process 1: ") || len(answers) != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
}
