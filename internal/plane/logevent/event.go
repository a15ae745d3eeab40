// SPDX-License-Identifier: Apache-2.0

package logevent

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Names of the fields of a row; see the package's comment.
const (
	Time      = "_time"
	Message   = "_msg"
	Log       = "@log"
	Stream    = "@logStream"
	File      = "@file"
	Offset    = "@offset"
	Truncated = "@truncated"
)

// MaxRow is the size in bytes of the longest row, newline included. VictoriaLogs drops a longer one
// (-insert.maxLineSizeBytes).
const MaxRow = 1 << 20

// MaxQuery is the size in bytes of the longest query that the log store takes (-search.maxQueryLen). The longest query names 100 log
// streams of 512 bytes; LogsQL may need four bytes for a byte of them.
const MaxQuery = 256 << 10

// MaxText is how much in bytes of a line is worth reading: of a longer line no more fits into a row.
const MaxText = 512 << 10

// LogGroup is the log group of a cluster's control plane, by EKS's name.
func LogGroup(cluster string) string { return "/aws/eks/" + cluster + "/cluster" }

// Event is a line of a log.
type Event struct {
	// Log and Stream say where it belongs: the fields of those names.
	Log, Stream string
	// File is the identity of the file that it is in, and Offset the byte in it that the line begins at.
	File   string
	Offset int64
	Time   time.Time
	// Text is the line without its newline; Cut says that its end is not there.
	Text []byte
	Cut  bool
}

// Append appends the event as a row: an object of JSON of at most MaxRow bytes, with a newline.
func (e Event) Append(to []byte) []byte {
	begin := len(to)
	row := e.append(to, e.Text, flatten(e.Text), e.Cut)
	if len(row)-begin <= MaxRow {
		return row
	}
	text, cut := e.Text, e.Cut
	for {
		row = e.append(row[:begin], text, nil, cut)
		if len(row)-begin <= MaxRow {
			return row
		}
		text, cut = text[:len(text)/2], true
	}
}

func (e Event) append(to, text []byte, fields []field, cut bool) []byte {
	to = append(to, '{')
	to = appendField(to, Time, e.Time.UTC().Format(time.RFC3339Nano))
	to = appendField(append(to, ','), Log, e.Log)
	to = appendField(append(to, ','), Stream, e.Stream)
	to = appendField(append(to, ','), File, e.File)
	to = appendField(append(to, ','), Offset, strconv.FormatInt(e.Offset, 10))
	if cut {
		to = appendField(append(to, ','), Truncated, "true")
	}
	to = appendField(append(to, ','), Message, string(text))
	for _, f := range fields {
		to = appendField(append(to, ','), f.name, f.value)
	}
	return append(to, '}', '\n')
}

func appendField(to []byte, name, value string) []byte {
	return appendQuoted(append(appendQuoted(to, name), ':'), value)
}

// appendQuoted appends a string of JSON. Invalid UTF-8 becomes U+FFFD. Unlike encoding/json it leaves <, > and & as
// they are, which would take six bytes each.
func appendQuoted(to []byte, text string) []byte {
	const digits = "0123456789abcdef"
	to = append(to, '"')
	for _, r := range text { // an invalid byte is utf8.RuneError
		switch {
		case r == '"' || r == '\\':
			to = append(to, '\\', byte(r))
		case r == '\n':
			to = append(to, '\\', 'n')
		case r == '\t':
			to = append(to, '\\', 't')
		case r < ' ':
			to = append(to, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
		default:
			to = utf8.AppendRune(to, r)
		}
	}
	return append(to, '"')
}
