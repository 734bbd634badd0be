package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// child has this program be the command.
const child = "CROSSVET_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestOtherSystem: what is wrong in a file for another system, or in a test for it, is found when
// that system is asked for, and only then.
func TestOtherSystem(t *testing.T) {
	for name, c := range map[string]struct{ file, text, finds string }{
		"nothing": {"a_darwin.go", `func f() { fmt.Printf("%d", 1) }`, ""},
		"vet":     {"a_darwin_test.go", `func f() { fmt.Printf("%d", "text") }`, "wrong type"},
		"types":   {"a_darwin_test.go", `var n int = fmt.Sprint()`, "as int value"},
		"sizes":   {"a_darwin.go", `var n = fmt.Sprint(int32(1) << 32)`, "overflows"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"go.mod":      "module example\n\ngo 1.26\n",
			"everyone.go": "package example\n",
			c.file:        "package example\n\nimport \"fmt\"\n\n" + c.text + "\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for system, finds := range map[string]string{"darwin": c.finds, "linux": ""} {
			cmd := exec.Command(os.Args[0], ".")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), child+"=1", "GOOS="+system, "GOARCH=arm64", "GOFLAGS=")
			out, err := cmd.CombinedOutput()
			if (err == nil) != (finds == "") || !strings.Contains(string(out), finds) {
				t.Errorf("%s, for %s: %v: %s", name, system, err, out)
			}
		}
	}
}
