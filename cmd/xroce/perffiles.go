package main

import (
	"encoding/json"
	"io"

	"xroce/cmd/perfdump"
	"xroce/cmd/xroce/internal/perf"
)

// perfFiles are what a test writes when it is over.
type perfFiles struct {
	dump, report resultFile
}

// openFiles opens those that were asked for. Who gets them must close them.
func (f *perfFlags) openFiles() (files *perfFiles, err error) {
	files = &perfFiles{}
	if files.dump, err = openResult(f.dump); err != nil {
		return nil, err
	}
	if f.outJSON {
		if files.report, err = openResult(f.outFile); err != nil {
			files.close()
			return nil, err
		}
	}
	if files.dump.is(files.report) {
		files.close()
		return nil, usagef("--dump and --out_json_file: %s cannot be both", f.dump)
	}
	return files, nil
}

// writeReport writes the report of --out_json, if that was asked for and there is one: an end
// without a result of its own has none.
func (p *perfFiles) writeReport(report *perf.File) error {
	if report == nil {
		return nil
	}
	return p.report.fill(func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(report)
	})
}

// writeDump writes the memory of --dump, if that was asked for.
func (p *perfFiles) writeDump(d *perfdump.Dump) error {
	return p.dump.fill(func(w io.Writer) error {
		_, err := d.WriteTo(w)
		return err
	})
}

// close closes those to which nothing was written.
func (p *perfFiles) close() {
	p.dump.close()
	p.report.close()
}
