package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/pathcheck"
	"xroce/cmd/xroce/internal/rdmacm"
	"xroce/engine/oob"
	"xroce/engine/tunnel"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// A commandLine begins with our name: where code does, behind a prompt, sudo or a pipe. It ends
// where a shell has another command, or a comment.
var (
	code        = regexp.MustCompile("(?s)```\n.*?```|`[^`]*`")
	commandLine = regexp.MustCompile("(?m)(?:^[ `]*|[$#|] |sudo )(?:\\./)?xroce ([a-z][^`\n]*)")
	commandEnd  = regexp.MustCompile(`( #|[|>;&]|\.\.\.| \\$|$)`)
)

// TestDocumentedCommandLines: the command lines of the documents, and of the examples that --help
// shows, name commands and flags that there are.
func TestDocumentedCommandLines(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range append(files, filepath.Join("..", "..", "README.md")) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = strings.Join(code.FindAllString(string(b), -1), "\n")
	}
	root := documentedRoot()
	eachCommand(root, func(c *cobra.Command) { texts[c.CommandPath()+" --help"] = c.Example })
	lines := 0
	for name, text := range texts {
		for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
			line := m[1][:commandEnd.FindStringIndex(m[1])[0]]
			lines++
			if wrong := wrongLine(root, line); wrong != "" {
				t.Errorf("%s: xroce %s: %s", name, line, wrong)
			}
		}
	}
	if lines < 250 {
		t.Errorf("%d command lines", lines)
	}
}

// documentedRoot is the tree of all commands, with those that cobra adds.
func documentedRoot() *cobra.Command {
	root := newApp(io.Discard, io.Discard).rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// eachCommand calls f for a command and all below it.
func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, f)
	}
}

// wrongLine says what is wrong with a command line, "" for nothing. The values of flags are not
// looked at: most are placeholders. A flag of a command with others below it may be theirs.
func wrongLine(root *cobra.Command, line string) string {
	command, rest, err := root.Find(strings.Fields(line))
	switch {
	case err != nil:
		return err.Error()
	case command == root, command.HasSubCommands() && len(rest) > 0 && rest[0][0] != '-':
		return "no such command"
	}
	for _, arg := range rest {
		arg, _, _ = strings.Cut(strings.TrimRight(arg, ".,:)"), "=")
		known := false
		eachCommand(command, func(c *cobra.Command) {
			c.InheritedFlags() // adds them
			c.InitDefaultHelpFlag()
			switch {
			case strings.HasPrefix(arg, "--"):
				known = known || arg == "--" || c.Flags().Lookup(arg[2:]) != nil
			case len(arg) > 1 && arg[0] == '-':
				known = known || c.Flags().ShorthandLookup(arg[1:2]) != nil
			default:
				known = true
			}
		})
		if !known {
			return "no flag " + arg
		}
	}
	return ""
}

// TestWrongLinesAreFound: what the test before looks for it finds.
func TestWrongLinesAreFound(t *testing.T) {
	root := documentedRoot()
	for _, line := range []string{
		"nothing", "serve --port 1 --no-such", "copy -Z a b:", "perf send-bw --no-such=1",
		"-d eth0", "msg no-such",
	} {
		if wrongLine(root, line) == "" {
			t.Errorf("xroce %s: nothing is wrong", line)
		}
	}
	for _, line := range []string{
		"perf send-bw -d eth0 -n5 --json 192.0.2.1", "help", "copy - 192.0.2.1:x", "check --help",
		"perf --mode", "completion bash",
	} {
		if wrong := wrongLine(root, line); wrong != "" {
			t.Errorf("xroce %s: %s", line, wrong)
		}
	}
}

// TestDocumentedPorts: the table of README.md names each port and service number that the commands
// have by default.
func TestDocumentedPorts(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(b), "What goes over a firewall")
	table, _, ended := strings.Cut(after, "\n\nRates")
	if !ok || !ended {
		t.Fatal("README.md has no table of what goes over a firewall")
	}
	for name, port := range map[string]int{
		"RoCEv2": wire.UDPPort, "perf, serve and copy": oob.Port, "check": pathcheck.Port,
		"tunnel": tunnel.DefaultPort, "rping": rdmacm.RpingPort, "udaddy": rdmacm.UdaddyPort,
		"ucmatose": rdmacm.CmatosePort, "rdma-server": rdmacm.SimplePort, "msg": msgPort,
		"pktgen": gen.DefaultPort,
	} {
		if !regexp.MustCompile(fmt.Sprintf(`\b%d\b`, port)).MatchString(table) {
			t.Errorf("the port of %s, %d, is not in the table of README.md", name, port)
		}
	}
}
