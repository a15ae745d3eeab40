// SPDX-License-Identifier: Apache-2.0

package queryvalue

import (
	"unicode/utf8"

	"muster.dev/muster/internal/aws/awsshape"
)

// Append writes the members of a structure as XML elements.
func Append(out []byte, shape *awsshape.Shape, value awsshape.Value) ([]byte, error) {
	return appendWith(writer{out: out, time: awsshape.DateTime}, shape, value)
}

// AppendWhole writes the members of a structure as STS and IAM do: all of them, in the order of the structure, see
// [awsshape.Value.Whole]; moments to the second, if they are whole seconds; quotes, tabs and line feeds as numbers.
func AppendWhole(out []byte, shape *awsshape.Shape, value awsshape.Value) ([]byte, error) {
	return appendWith(writer{out: out, time: awsshape.Short, escape: numbered}, shape, value.Whole())
}

func appendWith(w writer, shape *awsshape.Shape, value awsshape.Value) ([]byte, error) {
	err := w.members(shape, value)
	return w.out, err
}

// Element writes an element that holds text.
func Element(out []byte, name, text string) []byte {
	w := writer{out: out}
	w.open(name)
	w.text(text)
	w.close(name)
	return w.out
}

// ElementWhole is Element as STS and IAM write it.
func ElementWhole(out []byte, name, text string) []byte {
	w := writer{out: out, escape: numbered}
	w.open(name)
	w.text(text)
	w.close(name)
	return w.out
}

type writer struct {
	out    []byte
	time   awsshape.TimeFormat // of members whose time has no format of its own
	escape map[rune]string     // in place of the usual ones
}

// numbered are the escapes of STS and IAM beside the usual ones.
var numbered = map[rune]string{'"': "&#34;", '\'': "&#39;", '\t': "&#x9;", '\n': "&#xA;"}

func (w *writer) open(name string) {
	w.out = append(w.out, '<')
	w.out = append(w.out, name...)
	w.out = append(w.out, '>')
}

func (w *writer) close(name string) {
	w.out = append(w.out, '<', '/')
	w.out = append(w.out, name...)
	w.out = append(w.out, '>')
}

func (w *writer) members(s *awsshape.Shape, value awsshape.Value) error {
	return s.EachMember(value, func(m *awsshape.Member, inner awsshape.Value) error {
		if m.Shape.Kind == awsshape.List && m.FlatOut {
			return m.Shape.EachItem(inner, func(item awsshape.Value) error { return w.element(m.Out, m.Shape.Item, item, m.Time) })
		}
		return w.element(m.Out, m.Shape, inner, m.Time)
	})
}

func (w *writer) element(name string, s *awsshape.Shape, value awsshape.Value, format awsshape.TimeFormat) error {
	w.open(name)
	var err error
	switch s.Kind {
	case awsshape.Structure, awsshape.Union:
		err = w.members(s, value)
	case awsshape.List:
		err = s.EachItem(value, func(item awsshape.Value) error { return w.element(s.ItemOut, s.Item, item, awsshape.Usual) })
	case awsshape.Map:
		err = s.EachEntry(value, func(key string, item awsshape.Value) error {
			w.open("entry")
			w.open("key")
			w.text(key)
			w.close("key")
			if err := w.element("value", s.Item, item, awsshape.Usual); err != nil {
				return err
			}
			w.close("entry")
			return nil
		})
	default:
		if format == awsshape.Usual {
			format = w.time
		}
		var text string
		text, err = s.Text(value, format)
		w.text(text)
	}
	w.close(name)
	return err
}

// text escapes the characters that XML and attribute values need escaped. Characters that XML 1.0 does not allow become
// U+FFFD.
func (w *writer) text(text string) {
	start := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		replacement, ok := w.escape[r]
		if !ok {
			replacement = escaped(r, size)
		}
		if replacement != "" {
			w.out = append(w.out, text[start:i]...)
			w.out = append(w.out, replacement...)
			start = i + size
		}
		i += size
	}
	w.out = append(w.out, text[start:]...)
}

func escaped(r rune, size int) string {
	switch r {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '"':
		return "&quot;"
	case '\'':
		return "&apos;"
	case '\r': // a reader would make a line feed of it
		return "&#xD;"
	case '\t', '\n':
		return ""
	case 0xFFFE, 0xFFFF:
		return "\ufffd"
	case utf8.RuneError:
		if size == 1 {
			return "\ufffd"
		}
	}
	if r < 0x20 {
		return "\ufffd"
	}
	return ""
}
