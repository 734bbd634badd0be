package main

import (
	"xroce/bench/result"
	"xroce/bench/stage"
)

// decodeCases measure how fast a large capture is read by our commands and by those of others.
// decode checks each ICRC and prints each packet; tshark prints and does not check; capinfos looks
// at lengths and times alone.
func decodeCases() []benchCase {
	others := []variant{
		{
			name: tshark.String(), needs: []backend{tshark},
			run: reads(othersCommand("tshark", "-n", "-r")),
		},
		{
			name: capinfos.String(), needs: []backend{capinfos},
			run: reads(othersCommand("capinfos")),
		},
	}
	var cases []benchCase
	for _, one := range []struct{ name, command, title string }{
		{result.DecodeCase, "decode", "print each packet of a capture of 200 MB"},
		{result.AnalyzeCase, "analyze", "say what happened in a capture of 200 MB"},
	} {
		cases = append(cases, benchCase{
			name: one.name, title: one.title, unit: "bytes/s", full: true, maxRounds: 5,
			control: tshark.String(), stage: stage.Options{MTU: 1500},
			variants: append([]variant{{
				name: ours.String(), needs: []backend{command}, run: reads(ourCommand(one.command)),
			}}, others...),
		})
	}
	return cases
}
