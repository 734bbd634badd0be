package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/leaktest"
)

// childDoes in the environment makes the test binary another process that does one
// thing in the directory childDir: "listen", "ask" or "dial NAME".
const (
	childDoes = "XROCE_TEST_CONTROL"
	childDir  = "XROCE_TEST_CONTROL_DIR"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDoes) == "" {
		leaktest.Main(m)
	}
	if err := childMain(os.Getenv(childDir)); err != nil {
		fmt.Println("error:", err)
	}
}

// childMain is what the child does. It says "ready" when it listens and then waits until
// its standard input ends.
func childMain(dir string) error {
	does, name, _ := strings.Cut(os.Getenv(childDoes), " ")
	switch does {
	case "listen":
		s, err := Listen(dir)
		if err != nil {
			return err
		}
		defer s.Close()
	case "pose": // as a server of the owner of the directory
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer l.Close()
	case "ask":
		answers, err := Ask(context.Background(), dir, 0, 1, false)
		fmt.Println(len(answers), "answers")
		return err
	case "dial":
		conn, err := net.Dial("unix", filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer conn.Close()
		fmt.Fprintln(conn, `{"get":"resources"}`)
		var a Answer
		if err := json.NewDecoder(conn).Decode(&a); err != nil {
			return fmt.Errorf("not answered: %w", err)
		}
		fmt.Println("answered")
		return nil
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
	return nil
}

// A child is a process that does something, with the first line that it says.
type child struct {
	cmd   *exec.Cmd
	said  string
	leave func() // ends it
}

// start starts a child with some attributes.
func start(t *testing.T, dir, does string, attr *syscall.SysProcAttr) *child {
	t.Helper()
	c := &child{cmd: exec.Command("/proc/self/exe")}
	c.cmd.Env = append(os.Environ(), childDoes+"="+does, childDir+"="+dir)
	c.cmd.SysProcAttr, c.cmd.Stderr = attr, os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.said, _ = bufio.NewReader(out).ReadString('\n')
	c.leave = func() { _ = errors.Join(in.Close(), c.cmd.Wait()) }
	return c
}

// TestPIDNamespaces: two processes that are both number 1, each in a namespace of its
// own, do not remove each other's sockets, and neither does who asks there.
func TestPIDNamespaces(t *testing.T) {
	xsktest.NeedRoot(t)
	s, dir := listen(t)
	s.Add(device(t))
	own := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	var children []*child
	for range 2 {
		c := start(t, dir, "listen", own)
		defer c.leave()
		if c.said != "ready\n" {
			t.Fatal(c.said)
		}
		children = append(children, c)
	}
	asker := start(t, dir, "ask", own)
	asker.leave()
	if asker.said != "3 answers\n" {
		t.Errorf("in a third namespace: %s", asker.said)
	}
	answers, err := Ask(t.Context(), dir, 0, 1, false)
	if err != nil || len(answers) != 3 {
		t.Fatalf("%+v, %v", answers, err)
	}
	for _, c := range children { // here they have the numbers that they have here
		answers, err := Ask(t.Context(), dir, c.cmd.Process.Pid, 1, false)
		if err != nil || len(answers) != 1 || answers[0].PID != c.cmd.Process.Pid {
			t.Errorf("%+v, %v", answers, err)
		}
	}
}

// open lets another user into a directory of a test.
func open(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	for d := filepath.Dir(dir); d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
}

// TestOtherUsers get no answer, and give none, even where the modes would let them.
func TestOtherUsers(t *testing.T) {
	xsktest.NeedRoot(t)
	s, dir := listen(t)
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := os.Chmod(s.path(), 0o666); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 0o777)
	c := start(t, dir, "dial "+s.name, nobody)
	c.leave()
	if !strings.Contains(c.said, "not answered") {
		t.Errorf("another user: %q", c.said)
	}
	pose := start(t, dir, "pose "+newName(1), nobody)
	defer pose.leave()
	if pose.said != "ready\n" {
		t.Fatal(pose.said)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	answers, err := Ask(t.Context(), dir, 0, 1, false)
	if err == nil || !strings.Contains(err.Error(), "is of user 65534") || len(answers) != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
}

// TestDirectoryOfAnotherUser: nothing is looked for or made in a directory that belongs to somebody
// else, though nobody but him can enter it.
func TestDirectoryOfAnotherUser(t *testing.T) {
	xsktest.NeedRoot(t)
	dir := filepath.Join(t.TempDir(), "xroce")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if s, err := Listen(dir); err == nil || !strings.Contains(err.Error(), "user 65534") {
		s.Close()
		t.Errorf("Listen: %v", err)
	}
	_, err := Ask(t.Context(), dir, 0, 1, false)
	if err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("Ask: %v", err)
	}
}

// TestReplacedDirectory: a server does all in the directory that it looked at, whatever
// has its name by then.
func TestReplacedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "xroce")
	d, err := openDirectory(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	elsewhere := t.TempDir()
	err = errors.Join(os.Rename(dir, dir+".moved"), os.Symlink(elsewhere, dir))
	if err != nil {
		t.Fatal(err)
	}
	l, name, err := bind(d)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if found, err := os.ReadDir(elsewhere); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
	info, err := os.Lstat(filepath.Join(dir+".moved", name))
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
