package dump

import (
	"fmt"
	"strings"
	"time"
)

// layouts are the conversions of strftime(3) that time.Format has, in the C locale.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006",
	'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03",
	'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05",
	'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700",
	'Z': "MST",
}

// CheckName tells what is wrong with a name that is a format of strftime(3).
func CheckName(name string) error {
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			continue
		}
		if i++; i == len(name) {
			return fmt.Errorf("%q ends with a %%: a %% itself is %%%%", name)
		}
		if _, ok := convert(name[i], time.Time{}); !ok {
			return fmt.Errorf("%q: %%%c is no time: a %% itself is %%%%", name, name[i])
		}
	}
	return nil
}

// strftime puts a time into a name that CheckName has found right, and reports whether there is
// any in it.
func strftime(name string, at time.Time) (text string, timed bool) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' || i+1 == len(name) {
			b.WriteByte(name[i])
			continue
		}
		i++
		piece, _ := convert(name[i], at)
		b.WriteString(piece)
		timed = timed || strings.IndexByte("%nt", name[i]) < 0
	}
	return b.String(), timed
}

// convert is what the conversion with a letter stands for.
func convert(letter byte, at time.Time) (text string, ok bool) {
	if layout, ok := layouts[letter]; ok {
		return at.Format(layout), true
	}
	year, week := at.ISOWeek()
	weekday := int(at.Weekday()) // from Sunday, 0
	switch letter {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'C':
		return fmt.Sprintf("%02d", at.Year()/100), true
	case 'g':
		return fmt.Sprintf("%02d", year%100), true
	case 'G':
		return fmt.Sprint(year), true
	case 'k':
		return fmt.Sprintf("%2d", at.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (at.Hour()+11)%12+1), true
	case 'P':
		return strings.ToLower(at.Format("PM")), true
	case 's':
		return fmt.Sprint(at.Unix()), true
	case 'u':
		return fmt.Sprint((weekday+6)%7 + 1), true
	case 'w':
		return fmt.Sprint(weekday), true
	case 'U': // weeks from the first Sunday on
		return fmt.Sprintf("%02d", (at.YearDay()+6-weekday)/7), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	case 'W': // weeks from the first Monday on
		return fmt.Sprintf("%02d", (at.YearDay()+6-(weekday+6)%7)/7), true
	}
	return "", false
}
