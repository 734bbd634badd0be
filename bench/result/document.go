package result

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"xroce/bench/machine"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// version of the JSON format. A reader refuses others.
const version = 1

// A Document is one run of the harness.
type Document struct {
	Version int           `json:"version"`
	Time    time.Time     `json:"time"`
	Machine machine.Facts `json:"machine"`
	Load    float64       `json:"load_average"` // of the minute before the run
	Quick   bool          `json:"quick"`        // windows too short to mean anything
	Pairs   int           `json:"pairs"`
	Window  float64       `json:"window_seconds"`
	Cases   []Case        `json:"cases"`

	Profiles []Profile `json:"profiles,omitempty"` // of some of ours
}

// A Case is one kind of work, done by several variants in turn. The first
// variant is ours and is compared with the others, or, with a reference, all are
// compared with that.
type Case struct {
	Name          string         `json:"name"`
	Title         string         `json:"title"`
	Unit          string         `json:"unit"`
	LowerIsBetter bool           `json:"lower_is_better,omitempty"`
	Lossless      bool           `json:"lossless"` // loss voids a row
	Control       string         `json:"control"`  // variant that must hold still
	Reference     string         `json:"reference,omitempty"`
	Variants      []string       `json:"variants"`       // that ran
	Axis          string         `json:"axis,omitempty"` // what the points are, in words
	At            []Point        `json:"at,omitempty"`   // of the variants that have one
	Skipped       []Skip         `json:"skipped,omitempty"`
	Settings      stage.Settings `json:"settings"`
	Sockets       Sockets        `json:"sockets"`
	Rows          []Row          `json:"rows"`
}

// A Point is where a variant is on the axis of its case.
type Point struct {
	Variant string  `json:"variant"`
	At      float64 `json:"at"`
}

// Sockets are the settings that all variants of a case share.
type Sockets struct {
	Frame    int `json:"frame_bytes"`
	Message  int `json:"message_bytes,omitempty"`
	RxFrames int `json:"rx_frames"`
	TxFrames int `json:"tx_frames"`
	Batch    int `json:"batch"`
	Budget   int `json:"tx_budget"`
	SendBuf  int `json:"sndbuf_bytes"`
}

// A Skip says why a variant was not measured.
type Skip struct {
	Variant string `json:"variant"`
	Reason  string `json:"reason"`
}

// A Row is one measurement of one variant.
type Row struct {
	Round   int             `json:"round"`
	Variant string          `json:"variant"`
	Value   float64         `json:"value"`          // in the unit of the case
	Loss    float64         `json:"loss"`           // fraction of the packets sent
	Load    float64         `json:"load_average"`   // when the row began
	Void    string          `json:"void,omitempty"` // why the row does not count
	Workers []worker.Report `json:"workers"`        // sender first
}

// Save writes the document into a directory, under a name made of its time and
// commit, and returns the name. It is there whole or not at all.
func (d *Document) Save(dir string) (string, error) {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return "", fmt.Errorf("result: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("result: %w", err)
	}
	name := filepath.Join(dir,
		d.Time.UTC().Format("20060102-150405")+"-"+d.Machine.Commit+".json")
	if err := os.WriteFile(name+".tmp", append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("result: %w", err)
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return "", fmt.Errorf("result: %w", err)
	}
	return name, nil
}

// Load reads a stored document.
func Load(name string) (*Document, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	d := &Document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("result: %s: %w", name, err)
	}
	if d.Version != version {
		return nil, fmt.Errorf("result: %s has format %d, want %d", name, d.Version, version)
	}
	return d, nil
}

// New starts a document.
func New(now time.Time, facts machine.Facts, load float64) *Document {
	return &Document{Version: version, Time: now, Machine: facts, Load: load, Cases: []Case{}}
}
