// SPDX-License-Identifier: Apache-2.0

package jsonvalue

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/awsshape"
)

// Append writes a value to the end of a document. Members that are not in the body are left out.
func Append(out []byte, shape *awsshape.Shape, value awsshape.Value) ([]byte, error) {
	w := writer{out: out}
	err := w.value(shape, value, awsshape.Usual)
	return w.out, err
}

type writer struct{ out []byte }

func (w *writer) value(s *awsshape.Shape, value awsshape.Value, format awsshape.TimeFormat) error {
	first := true
	next := func() {
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
	}
	var err error
	switch s.Kind {
	case awsshape.Structure, awsshape.Union:
		w.out = append(w.out, '{')
		err = s.EachMember(value, func(m *awsshape.Member, inner awsshape.Value) error {
			if m.Place != awsshape.Body {
				return nil
			}
			next()
			w.name(m.Out)
			return w.value(m.Shape, inner, m.Time)
		})
		w.out = append(w.out, '}')
	case awsshape.Map:
		w.out = append(w.out, '{')
		err = s.EachEntry(value, func(key string, inner awsshape.Value) error {
			next()
			w.name(key)
			return w.value(s.Item, inner, awsshape.Usual)
		})
		w.out = append(w.out, '}')
	case awsshape.List:
		w.out = append(w.out, '[')
		err = s.EachItem(value, func(inner awsshape.Value) error {
			next()
			return w.value(s.Item, inner, awsshape.Usual)
		})
		w.out = append(w.out, ']')
	case awsshape.Document:
		var raw []byte
		raw, err = json.Marshal(value.Any())
		w.out = append(w.out, raw...)
	default:
		err = w.scalar(s, value, format)
	}
	return err
}

func (w *writer) name(name string) {
	w.out = append(AppendString(w.out, name), ':')
}

func (w *writer) scalar(s *awsshape.Shape, value awsshape.Value, format awsshape.TimeFormat) error {
	if format == awsshape.Usual {
		format = awsshape.Epoch
	}
	text, err := s.Text(value, format)
	if err != nil {
		return err
	}
	quoted := s.Kind == awsshape.String || s.Kind == awsshape.Blob || s.Kind == awsshape.Timestamp && format != awsshape.Epoch
	if s.Kind == awsshape.Float || s.Kind == awsshape.Double {
		f, err := strconv.ParseFloat(text, 64)
		quoted = err != nil || math.IsNaN(f) || math.IsInf(f, 0)
	}
	if quoted {
		w.out = AppendString(w.out, text)
		return nil
	}
	w.out = append(w.out, text...)
	return nil
}

const hexDigits = "0123456789abcdef"

// AppendString writes a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendString(out []byte, text string) []byte {
	out = append(out, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		out = append(out, text[start:i]...)
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\r':
			out = append(out, '\\', 'r')
		case c == '\t':
			out = append(out, '\\', 't')
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			out = append(out, "\ufffd"...)
		}
		i++
		start = i
	}
	out = append(out, text[start:]...)
	return append(out, '"')
}
