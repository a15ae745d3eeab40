// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Scalar reads a value that came as text: in a path, a query string, a header or a form. Its errors say what is right,
// and the caller says which member it is about.
func (s *Shape) Scalar(text string, format TimeFormat) (any, error) {
	switch s.Kind {
	case String:
		return text, nil
	case Boolean:
		switch text {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%.50q is not a boolean: want true or false", text)
	case Integer, Long:
		bits := 64
		if s.Kind == Integer {
			bits = 32
		}
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil || strings.HasPrefix(text, "+") {
			return nil, fmt.Errorf("%.50q is not a whole number of %d bits", text, bits)
		}
		return n, nil
	case Float, Double:
		return ParseFloat(text)
	case Blob:
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("%.50q is not base64", text)
		}
		return raw, nil
	case Timestamp:
		return ParseTime(text, format)
	default:
		return nil, fmt.Errorf("a %s is not one value", s.Kind)
	}
}

// ParseFloat reads a decimal number, or NaN, Infinity or -Infinity.
func ParseFloat(text string) (float64, error) {
	switch text {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	// ParseFloat also takes hexadecimal numbers, underscores and words.
	if err != nil || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, fmt.Errorf("%.50q is not a number", text)
	}
	return f, nil
}

// furthest bounds timestamps, so that arithmetic with them cannot overflow: the year 9999.
const furthest = 253402300799

// ParseTime reads a moment. Years are from 1 to 9999.
func ParseTime(text string, format TimeFormat) (time.Time, error) {
	switch format {
	case Epoch:
		f, err := ParseFloat(text)
		if err != nil {
			return time.Time{}, err
		}
		return EpochTime(f)
	case HTTPDate:
		t, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", text)
		if err != nil {
			return time.Time{}, fmt.Errorf("%.50q is not a time: want Mon, 02 Jan 2006 15:04:05 GMT", text)
		}
		return t.UTC(), nil
	default:
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
			return time.Time{}, fmt.Errorf("%.50q is not a time: want 2006-01-02T15:04:05Z", text)
		}
		return t.UTC(), nil
	}
}

// EpochTime is the moment that many seconds after 1970, to the millisecond.
func EpochTime(seconds float64) (time.Time, error) {
	if math.IsNaN(seconds) || math.Abs(seconds) > furthest || seconds < -62135596800 {
		return time.Time{}, fmt.Errorf("%g seconds is not a time between the years 1 and 9999", seconds)
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), nil
}
