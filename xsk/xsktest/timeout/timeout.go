package timeout

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Variable is the environment variable with the number by which limits grow.
const Variable = "XROCE_TIMEOUT_MULTIPLIER"

// Scaled is how long to wait for what takes at most d on a machine that does
// nothing else. Safe for concurrent use. It panics when the environment variable is
// set to what is no number: a limit that nobody meant is worse.
func Scaled(d time.Duration) time.Duration { return d * time.Duration(Multiplier()) }

// Multiplier is the number by which limits grow, 1 or more.
func Multiplier() int { return fromEnvironment() }

// fromEnvironment reads the number once: it holds for a whole run.
var fromEnvironment = sync.OnceValue(func() int {
	n, err := parse(os.Getenv(Variable))
	if err != nil {
		panic(err)
	}
	return n
})

// maxMultiplier bounds the number: more is a mistake, and would overflow limits.
const maxMultiplier = 1000

// parse reads the number from the text of the variable.
func parse(text string) (int, error) {
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxMultiplier {
		return 0, fmt.Errorf("timeout: %s=%q, want a whole number from 1 to %d", Variable, text,
			maxMultiplier)
	}
	return n, nil
}
