package configfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// flagSet has flags of every form that those of commands have.
func flagSet() (flags *pflag.FlagSet, device *string, mtu *int, peers *[]string) {
	flags = pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.Duration("idle", 0, "")
	flags.Bool("quiet", false, "")
	flags.Uint16("segment", 0, "")
	flags.String(Flag, "", "")
	return flags, flags.String("device", "", ""), flags.Int("mtu", 0, ""),
		flags.StringArray("peer", nil, "")
}

// TestParse: what a file says is set, the last line of a word counts, and what the command line
// has is left alone.
func TestParse(t *testing.T) {
	flags, device, mtu, peers := flagSet()
	err := flags.Parse([]string{"--mtu", "9"})
	if err == nil {
		err = Parse("f", strings.NewReader("# all\n\tdevice=a # one\npeer = b\n\nmtu = 7\n"+
			"peer = c\ndevice = d"), flags)
	}
	if err != nil || *device != "d" || *mtu != 9 || strings.Join(*peers, " ") != "b c" {
		t.Errorf("%v: device %q, MTU %d, peers %q", err, *device, *mtu, *peers)
	}
}

// TestTooLong: a line that does not end is no mistake of words, and is told with its number.
func TestTooLong(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("#\n", maxLines+1):       "f: more than 4096 lines",
		"\n" + strings.Repeat("x", 2*maxLine):   "f:2: ",
		"\n\nmtu = " + strings.Repeat("x", 100): "f:3: ",
	} {
		flags, _, _, _ := flagSet()
		err := Parse("f", strings.NewReader(text), flags)
		var mistake *Mistake
		if err == nil || !strings.HasPrefix(err.Error(), want) ||
			errors.As(err, &mistake) == (len(text) > maxLine && text[0] != '#') {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// FuzzParse reads any file without a panic.
func FuzzParse(f *testing.F) {
	f.Add("device = a\npeer = b # c\n")
	f.Add("idle = 1m\nsegment=65536\nquiet\nmtu = -1\n")
	f.Fuzz(func(_ *testing.T, text string) {
		flags, _, _, _ := flagSet()
		_ = Parse("f", strings.NewReader(text), flags)
	})
}
