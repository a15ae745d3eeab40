// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"testing"
	"time"
)

func TestScalar(t *testing.T) {
	at := time.Date(2026, 11, 22, 18, 5, 6, 250_000_000, time.UTC)
	for _, c := range []struct {
		kind   Kind
		format TimeFormat
		text   string
		want   any // nil is an error
	}{
		{String, Usual, "x", "x"},
		{Boolean, Usual, "true", true},
		{Boolean, Usual, "false", false},
		{Boolean, Usual, "True", nil},
		{Boolean, Usual, "1", nil},
		{Integer, Usual, "-2147483648", int64(-2147483648)},
		{Integer, Usual, "2147483648", nil},
		{Integer, Usual, "+1", nil},
		{Integer, Usual, "1.0", nil},
		{Integer, Usual, "", nil},
		{Long, Usual, "2147483648", int64(2147483648)},
		{Long, Usual, "9223372036854775808", nil},
		{Double, Usual, "1.5e3", 1500.0},
		{Double, Usual, "0x1p4", nil},
		{Double, Usual, "1_000", nil},
		{Double, Usual, "inf", nil},
		{Double, Usual, "1e999", nil},
		{Timestamp, DateTime, "2026-11-22T18:05:06.25Z", at},
		{Timestamp, DateTime, "2026-11-22T19:05:06.25+01:00", at},
		{Timestamp, DateTime, "2026-11-22", nil},
		{Timestamp, DateTime, "0000-01-01T00:00:00Z", nil},
		{Timestamp, Epoch, "1795370706.25", at},
		{Timestamp, Epoch, "1e300", nil},
		{Timestamp, Epoch, "NaN", nil},
		{Timestamp, HTTPDate, "Sun, 22 Nov 2026 18:05:06 GMT", at.Truncate(time.Second)},
		{Timestamp, HTTPDate, "yesterday", nil},
		{Blob, Usual, "aGk=", []byte("hi")},
		{Blob, Usual, "aGk", nil},
		{List, Usual, "a,b", nil},
	} {
		got, err := (&Shape{Kind: c.kind}).Scalar(c.text, c.format)
		if c.want == nil {
			if err == nil {
				t.Errorf("%s %q is %v: want an error", c.kind, c.text, got)
			}
			continue
		}
		if raw, ok := got.([]byte); ok {
			got, c.want = string(raw), string(c.want.([]byte))
		}
		if want, ok := c.want.(time.Time); ok && err == nil {
			if !got.(time.Time).Equal(want) {
				t.Errorf("%s %q is %v, want %v", c.kind, c.text, got, want)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s %q is %v, %v; want %v", c.kind, c.text, got, err, c.want)
		}
	}
}

func TestText(t *testing.T) {
	at := time.Date(2026, 11, 22, 18, 5, 6, 250_000_000, time.UTC)
	for _, c := range []struct {
		kind   Kind
		format TimeFormat
		value  any
		want   string // "" is an error
	}{
		{Integer, Usual, 7, "7"},
		{Integer, Usual, int64(1) << 31, ""},
		{Long, Usual, int64(1) << 31, "2147483648"},
		{Double, Usual, 1e21, "1000000000000000000000"},
		{Double, Usual, 0.25, "0.25"},
		{Boolean, Usual, false, "false"},
		{Boolean, Usual, "false", ""},
		{Blob, Usual, []byte("hi"), "aGk="},
		{Timestamp, DateTime, at, "2026-11-22T18:05:06.250Z"},
		{Timestamp, Epoch, at, "1795370706.25"},
		{Timestamp, Epoch, at.Truncate(time.Second), "1795370706"},
		{Timestamp, HTTPDate, at, "Sun, 22 Nov 2026 18:05:06 GMT"},
	} {
		got, err := (&Shape{Kind: c.kind}).Text(ValueOf(c.value), c.format)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s %v is %q, %v; want %q", c.kind, c.value, got, err, c.want)
		}
	}
}
