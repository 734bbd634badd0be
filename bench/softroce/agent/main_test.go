package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/bench/softroce/order"
)

// conversation starts an agent and returns the host's end of its port. The agent
// must end when that is closed.
func conversation(t *testing.T) (tell *json.Encoder, hear func() order.Notice) {
	t.Helper()
	host, guest := net.Pipe()
	done := make(chan error)
	go func() { done <- newAgent(guest).serve(guest) }()
	t.Cleanup(func() {
		host.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	in := json.NewDecoder(host)
	hear = func() order.Notice {
		t.Helper()
		var n order.Notice
		if err := in.Decode(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := hear(); n.ID != 0 || n.Ended {
		t.Fatalf("first notice %+v", n)
	}
	return json.NewEncoder(host), hear
}

// end collects what a command prints until it has ended.
func end(hear func() order.Notice) (output string, last order.Notice) {
	for {
		n := hear()
		output += string(n.Output)
		if n.Ended {
			return output, n
		}
	}
}

func TestRun(t *testing.T) {
	tell, hear := conversation(t)
	for id, c := range []struct {
		command, output string
		status          int
	}{
		{"echo one; echo two >&2", "one\ntwo\n", 0},
		{"exit 7", "", 7},
		{"kill -9 $$", "", 137},
		{"printf '\\000\\377'", "\x00\xff", 0},
		{"nosuchcommand 2>/dev/null", "", 127},
	} {
		if err := tell.Encode(order.Order{ID: id + 1, Start: c.command}); err != nil {
			t.Fatal(err)
		}
		output, last := end(hear)
		if output != c.output || last.Status != c.status || last.ID != id+1 {
			t.Errorf("%s: %q, %+v", c.command, output, last)
		}
	}
}

func TestSignalReachesTheWholeGroup(t *testing.T) {
	tell, hear := conversation(t)
	// The shell waits for a child of its own, and both must end.
	command := "echo up; sleep 1000 | sleep 1000"
	if err := tell.Encode(order.Order{ID: 5, Start: command}); err != nil {
		t.Fatal(err)
	}
	if n := hear(); string(n.Output) != "up\n" {
		t.Fatalf("%+v", n)
	}
	if err := tell.Encode(order.Order{ID: 5, Signal: int(unix.SIGKILL)}); err != nil {
		t.Fatal(err)
	}
	if _, last := end(hear); last.Status != 128+9 {
		t.Errorf("%+v", last)
	}
	// It is gone: another signal is none to anybody, and the agent goes on.
	for _, o := range []order.Order{
		{ID: 5, Signal: int(unix.SIGKILL)}, {ID: 6, Start: "true"},
	} {
		if err := tell.Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	if _, last := end(hear); last.ID != 6 || last.Status != 0 {
		t.Errorf("%+v", last)
	}
}

func TestBadOrderEndsTheAgent(t *testing.T) {
	host, guest := net.Pipe()
	defer host.Close()
	done := make(chan error)
	go func() { done <- newAgent(guest).serve(guest) }()
	var n order.Notice
	if err := json.NewDecoder(host).Decode(&n); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "hello") {
		t.Error(err)
	}
}

// TestRunAsMemberRefuses: what cannot be is said before anything is joined.
func TestRunAsMemberRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"member lo":                       "usage",
		"guest lo 239.1.2.3 true":         "usage",
		"member lo 192.0.2.1 true":        "no multicast group",
		"member lo ff15::1 true":          "no multicast group",
		"member nosuch0 239.1.2.3 true":   "nosuch0",
		"member lo 239.1.2.3 nosuchthing": "nosuchthing",
	} {
		if err := work(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestOpenPort(t *testing.T) {
	class := t.TempDir()
	for port, name := range map[string]string{"null": "other", "zero": order.Port} {
		if err := os.Mkdir(filepath.Join(class, port), 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(class, port, "name")
		if err := os.WriteFile(file, []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := openPort(class, order.Port)
	if err != nil || f.Name() != "/dev/zero" {
		t.Fatalf("%v, %v", f, err)
	}
	f.Close()
	if _, err := openPort(class, "absent"); err == nil {
		t.Error("a port that is not there was opened")
	}
}
