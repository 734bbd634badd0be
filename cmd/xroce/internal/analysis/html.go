package analysis

import (
	_ "embed"
	"html/template"
	"io"

	"xroce/roce/analyze"
)

//go:embed page.html
var pageText string

// page is the template, which escapes all that is put into it.
var page = template.Must(template.New("page").Parse(pageText))

// maxPlotted is how many connections have plots, the largest first.
const maxPlotted = 20

// A pageData is what the template prints.
type pageData struct {
	Name        string
	Report      *analyze.Report
	Size, Span  string
	Connections []pageConnection
	More        int
}

type pageConnection struct {
	Number     int
	Service    string
	MTU        int
	OneSided   bool
	Directions []pageDirection
}

type pageDirection struct {
	Title   string
	Packets int
	Payload string
	Rate    string
	Facts   [][2]string
	Plots   []pagePlot
}

type pagePlot struct {
	Name string
	SVG  template.HTML
}

// HTML prints a report of a file as one page.
func HTML(w io.Writer, name string, r *analyze.Report) error {
	data := pageData{Name: name, Report: r, Size: size(r.Bytes), Span: span(r.Duration)}
	for i := range r.Connections {
		if i == maxPlotted {
			data.More = len(r.Connections) - i
			break
		}
		c := &r.Connections[i]
		shown := pageConnection{Number: i + 1, Service: c.Service, MTU: c.MTU, OneSided: c.OneSided}
		for j := range c.Directions {
			shown.Directions = append(shown.Directions, pageOf(&c.Directions[j]))
		}
		data.Connections = append(data.Connections, shown)
	}
	return page.Execute(w, &data)
}

// pageOf is what the page has of a direction.
func pageOf(d *analyze.Direction) pageDirection {
	shown := pageDirection{
		Title: title(d), Packets: d.Packets, Payload: size(d.Payload), Facts: facts(d),
	}
	if d.Rate > 0 {
		shown.Rate = rate(d.Rate)
	}
	add := func(name string, svg template.HTML) {
		if svg != "" {
			shown.Plots = append(shown.Plots, pagePlot{name, svg})
		}
	}
	add("Throughput of payload", throughput(d))
	add("Packet sequence numbers", psns(d))
	for i := range d.Operations {
		add("Latency of "+d.Operations[i].Kind, histogram(d.Operations[i].Latency))
	}
	return shown
}
