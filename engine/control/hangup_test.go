package control

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestAskOfOneThatEnds: who hangs up because it ends is left out; who only had no place is asked
// again, and that it did not answer is told where it has none again.
func TestAskOfOneThatEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		read    bool // the request, before it hangs up: EOF, and else ECONNRESET or EPIPE
		refuses int
		gone    bool // its socket
		answers int
		fails   bool
	}{
		"ends":               {refuses: 1, gone: true},
		"ends, and has read": {refuses: 1, gone: true, read: true},
		"is busy":            {refuses: 1, read: true, answers: 1},
		"is always busy":     {refuses: 9, read: true, fails: true},
	} {
		asked := 0
		dir, end := poseAlone(t, func(conn net.Conn) {
			if tt.read || asked >= tt.refuses {
				_, _ = bufio.NewReader(conn).ReadString('\n')
			}
			if asked++; asked > tt.refuses {
				_, _ = fmt.Fprintln(conn, `{"version":1}`)
			} else if tt.gone {
				_ = os.Remove(conn.LocalAddr().String())
			}
		})
		answers, err := Ask(t.Context(), dir, 0, 1, false)
		if len(answers) != tt.answers || (err != nil) != tt.fails {
			t.Errorf("%s: %d answers, %v", name, len(answers), err)
		}
		if tt.fails && !strings.Contains(err.Error(), "process 1: no answer: ") {
			t.Errorf("%s: %v", name, err)
		}
		end()
	}
}

// TestAnswersHaveTheirTime: that of each is when it came, and not when all had come.
func TestAnswersHaveTheirTime(t *testing.T) {
	asked := make(chan time.Time, 2)
	play := func(conn net.Conn) {
		asked <- time.Now()
		_, _ = bufio.NewReader(conn).ReadString('\n')
		_, _ = fmt.Fprintln(conn, `{"version":1}`)
	}
	dir, endFirst := poseAlone(t, play)
	endSecond := pose(t, dir, play)
	answers, err := Ask(t.Context(), dir, 0, 1, false)
	endFirst()
	endSecond()
	if err != nil || len(answers) != 2 {
		t.Fatalf("%+v, %v", answers, err)
	}
	first, second := <-asked, <-asked
	if at := answers[0].At; at.Before(first) || at.After(second) || answers[1].At.Before(second) {
		t.Errorf("asked at %v and %v, answered at %v and %v", first, second, at, answers[1].At)
	}
}
