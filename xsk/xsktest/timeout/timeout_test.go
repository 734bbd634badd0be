package timeout

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]int{
		"": 1, "1": 1, "6": 6, "1000": 1000, "0": 0, "-2": 0, "1001": 0, "2.5": 0, "many": 0,
	} {
		n, err := parse(text)
		if n != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, n, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), Variable) {
			t.Errorf("%q: %v does not name the variable", text, err)
		}
	}
}

// TestScaled: the number of the environment holds for every limit.
func TestScaled(t *testing.T) {
	const child = "XROCE_TIMEOUT_TEST"
	if os.Getenv(child) != "" {
		if got := Scaled(20 * time.Second); got != time.Minute {
			t.Errorf("20 s three times are %v", got)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestScaled$")
	cmd.Env = append(os.Environ(), child+"=1", Variable+"=3")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCalibrate: what a run measures is a number that this package takes, and one that
// is there already is kept.
func TestCalibrate(t *testing.T) {
	const script = "../../../.ci/calibrate"
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	for given, min := range map[string]int{"": 2, "17": 17} {
		cmd := exec.Command(bash, script)
		cmd.Env = append(os.Environ(), Variable+"="+given)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		n, err := parse(strings.TrimSpace(string(out)))
		if err != nil || n < min || given != "" && n != min {
			t.Errorf("with %q: %q, %v", given, out, err)
		}
	}
}
