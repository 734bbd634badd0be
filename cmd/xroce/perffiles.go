package main

import (
	"encoding/json"
	"errors"
	"io"

	"xroce/cmd/perfdump"
	"xroce/cmd/xroce/internal/perf"
	"xroce/cmd/xroce/internal/userfile"
)

// perfFiles are what a test writes when it is over. They are opened before the peer is met: a test
// that ran for an hour should not fail since nothing can be written there. Until there is
// something to write, they keep what they have.
type perfFiles struct {
	dump, report *userfile.Output // nil where none was asked for, or it is closed
}

// openFiles opens those that were asked for. Who gets them must close them.
func (f *perfFlags) openFiles() (files *perfFiles, err error) {
	files = &perfFiles{}
	if f.dump != "" {
		if files.dump, err = userfile.Open(f.dump); err != nil {
			return nil, err
		}
	}
	if f.outJSON {
		if files.report, err = userfile.Open(f.outFile); err != nil {
			files.close()
			return nil, err
		}
	}
	return files, nil
}

// writeReport writes the report of --out_json, if that was asked for and there is one: an end
// without a result of its own has none.
func (p *perfFiles) writeReport(report *perf.File) error {
	if report == nil {
		return nil
	}
	return fill(&p.report, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(report)
	})
}

// writeDump writes the memory of --dump, if that was asked for.
func (p *perfFiles) writeDump(d *perfdump.Dump) error {
	return fill(&p.dump, func(w io.Writer) error {
		_, err := d.WriteTo(w)
		return err
	})
}

// close closes those to which nothing was written.
func (p *perfFiles) close() {
	for _, file := range []*userfile.Output{p.dump, p.report} {
		if file != nil {
			file.Abandon()
		}
	}
}

// fill has a file, if there is one, get its content, and closes it.
func fill(file **userfile.Output, write func(io.Writer) error) error {
	out := *file
	if out == nil {
		return nil
	}
	*file = nil
	err := out.Begin()
	if err == nil {
		err = write(out)
	}
	return errors.Join(err, out.Close())
}
