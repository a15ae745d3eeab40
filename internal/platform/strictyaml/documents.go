// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// Document is one document of a file.
type Document struct {
	Text   []byte
	before int // lines of the file that are before it

	tree *yaml.Node // nil before it is asked for
}

// Split returns the documents of a file that hold more than comments. A document begins where a line begins with three
// dashes, also if something follows them, and ends where one begins with three dots.
func Split(data []byte) []*Document {
	var documents []*Document
	begin, number := 0, 0
	current := &Document{}
	holds := false
	end := func(at int) {
		if current.Text = data[begin:at]; holds {
			documents = append(documents, current)
		}
	}
	at := 0
	for line := range bytes.Lines(data) {
		starts, stops := marker(line, "---"), marker(line, "...")
		switch {
		case starts:
			end(at)
			begin, current, holds = at, &Document{before: number}, content(line[3:])
		case stops:
			end(at)
			begin, current, holds = at+len(line), &Document{before: number + 1}, false
		default:
			holds = holds || content(line) && line[0] != '%'
		}
		at += len(line)
		number++
	}
	end(at)
	return documents
}

// marker reports whether a line begins with the mark and nothing that would make it a word.
func marker(line []byte, mark string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

func content(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && line[0] != '#'
}

// Documents returns the texts of the documents of a file.
func Documents(data []byte) ([][]byte, error) {
	var texts [][]byte
	for _, d := range Split(data) {
		texts = append(texts, d.Text)
	}
	return texts, nil
}
