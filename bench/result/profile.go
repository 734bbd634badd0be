package result

import "fmt"

// A Profile is where the time of one end of a case of ours went.
type Profile struct {
	Case  string `json:"case"`
	End   string `json:"end"` // "sends" or "receives"
	Parts Parts  `json:"parts"`
}

// Parts are shares of the processor time of a process, by the functions that took it. What the
// kernel does in a thread of its own, as threaded NAPI, is not in it.
type Parts struct {
	Kernel   float64 `json:"kernel"`   // system calls
	Copy     float64 `json:"copy"`     // of payload, and of all else
	CRC      float64 `json:"crc"`      // ICRC
	Protocol float64 `json:"protocol"` // package roce and below
	Rounds   float64 `json:"rounds"`   // package engine and the rings, also where nothing is to do
	Rest     float64 `json:"rest"`     // runtime and application
}

// A Part is one of them, with its name for people.
type Part struct {
	Name  string
	Share float64
}

// List returns the parts, from the kernel to the application.
func (p Parts) List() []Part {
	return []Part{
		{"kernel", p.Kernel},
		{"copy", p.Copy},
		{"CRC", p.CRC},
		{"protocol", p.Protocol},
		{"rings and rounds", p.Rounds},
		{"rest", p.Rest},
	}
}

// profileTable has the profiles in percent.
func (d *Document) profileTable() table {
	t := table{
		title:  "Where the time of each process went, in %",
		header: []string{"case", "end"},
	}
	for _, p := range (Parts{}).List() {
		t.header = append(t.header, p.Name)
	}
	for _, p := range d.Profiles {
		row := []string{p.Case, p.End}
		for _, part := range p.Parts.List() {
			row = append(row, fmt.Sprintf("%.1f", 100*part.Share))
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) > 0 {
		t.notes = []string{
			"Rings and rounds: also while there is nothing to do. A NAPI thread is in no process.",
		}
	}
	return t
}
