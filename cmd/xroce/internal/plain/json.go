package plain

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// JSON is a JSON document in which characters that encoding/json leaves as they are,
// and that a terminal may take for a command, are escaped, as U+009B is. The document
// means the same.
func JSON(document []byte) []byte {
	var b bytes.Buffer
	for len(document) > 0 {
		r, n := utf8.DecodeRune(document)
		switch {
		case r < utf8.RuneSelf && r != 0x7f, !unprintable(r), r > 0xffff:
			b.Write(document[:n])
		default: // only inside of strings
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		document = document[n:]
	}
	return b.Bytes()
}

// A Writer passes JSON on to W as JSON makes it, a document or more with each Write.
type Writer struct{ W io.Writer }

// Write passes all of the documents on, or fails.
func (w Writer) Write(documents []byte) (int, error) {
	if _, err := w.W.Write(JSON(documents)); err != nil {
		return 0, err
	}
	return len(documents), nil
}
