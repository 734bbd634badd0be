package tidy

import (
	"slices"
	"strings"
	"testing"
)

// TestFilesCallOneWay: in the packages of oneWay no call leads back to the file that it
// came from.
func TestFilesCallOneWay(t *testing.T) {
	tree := files(t)
	for _, dir := range oneWay {
		var list []*source
		for _, s := range tree.files {
			if s.isGo() && !s.isTest() && !s.tool() && s.dir() == dir && !isOther(s) {
				list = append(list, s)
			}
		}
		if len(list) == 0 {
			t.Errorf("%s is in oneWay, but has no files", dir)
			continue
		}
		circles, err := callCircles(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range circles {
			t.Error(c)
		}
	}
}

// isOther reports whether a file stands for another one on other systems.
func isOther(s *source) bool { return strings.HasSuffix(s.path, "_other.go") }

// TestCallCircles: the rule sees a circle, over methods too, and by way of several
// files; it sees none where calls lead one way, or back by an interface.
func TestCallCircles(t *testing.T) {
	const self = "package p\n\ntype t struct{}\n\n"
	for name, tt := range map[string]struct {
		texts []string
		want  string
	}{
		"two": {[]string{
			self + "func (t) a() { b() }\n", "package p\n\nfunc b() { t{}.a() }\n",
		}, "p/0.go, p/1.go"},
		"three": {[]string{
			"package p\n\nfunc a() { b() }\n", "package p\n\nfunc b() { c() }\n",
			"package p\n\nfunc c() { a() }\n",
		}, "p/0.go, p/1.go, p/2.go"},
		"promoted": {[]string{
			self + "func (t) a() { b() }\n",
			"package p\n\nimport \"other\"\n\ntype u struct{ t; other.T }\n\n" +
				"func b() { u{}.a() }\n",
		}, "p/0.go, p/1.go"},
		"one way": {[]string{
			"package p\n\nfunc a() { b(); c() }\n", "package p\n\nfunc b() { c() }\n",
			"package p\n\nfunc c() {}\n",
		}, ""},
		"by an interface": {[]string{
			self + "func (t) a() {}\n\nfunc c() { b(t{}) }\n",
			"package p\n\ntype i interface{ a() }\n\nfunc b(x i) { x.a() }\n",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var list []*source
			for i, text := range tt.texts {
				s, err := newSource("p/"+string(rune('0'+i))+".go", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, s)
			}
			got, err := callCircles(list)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{}
			if tt.want != "" {
				want = []string{"call each other in a circle: " + tt.want}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
