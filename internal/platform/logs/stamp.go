// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Stamp reads the time that a log line carries. It knows klog's header (I1120 12:33:44.123456), logfmt that begins with
// time= or ts= (containerd, log/slog), JSON objects (etcd, audit events, log/slog), and lines that begin with an RFC
// 3339 time or with the date of Go's log package.
//
// A klog header has neither year nor zone: ref, when the file was last written, gives both.
func Stamp(line []byte, ref time.Time) (time.Time, bool) {
	if len(line) == 0 {
		return time.Time{}, false
	}
	switch c := line[0]; {
	case c == 'I' || c == 'W' || c == 'E' || c == 'F':
		return klogStamp(line, ref)
	case c == '{':
		return jsonStamp(line)
	case c == 't':
		for _, key := range []string{"time=", "ts="} {
			if value, ok := bytes.CutPrefix(line, []byte(key)); ok {
				return leadingStamp(bytes.TrimPrefix(value, []byte{'"'}))
			}
		}
	case c >= '0' && c <= '9':
		if t, ok := leadingStamp(line); ok {
			return t, true
		}
		const layout = "2006/01/02 15:04:05"
		if len(line) >= len(layout) {
			t, err := time.ParseInLocation(layout, string(line[:len(layout)]), ref.Location())
			return t, err == nil
		}
	}
	return time.Time{}, false
}

// klogStamp reads Lmmdd hh:mm:ss.uuuuuu (k8s.io/klog/v2, internal/buffer).
func klogStamp(line []byte, ref time.Time) (time.Time, bool) {
	const layout = "0102 15:04:05.000000"
	if len(line) < 1+len(layout) {
		return time.Time{}, false
	}
	text := string(line[1 : 1+len(layout)])
	// A line from before the turn of the year stands in a file that was written after it. A day of grace, for clocks
	// that were set.
	for _, year := range []int{ref.Year(), ref.Year() - 1} {
		t, err := time.ParseInLocation("2006"+layout, strconv.Itoa(year)+text, ref.Location())
		if err == nil && !t.After(ref.Add(24*time.Hour)) {
			return t, true
		}
	}
	return time.Time{}, false
}

// leadingStamp reads an RFC 3339 time up to the first blank or quote.
func leadingStamp(text []byte) (time.Time, bool) {
	const longest = len("2006-01-02T15:04:05.999999999+00:00")
	if end := bytes.IndexAny(text[:min(len(text), longest+1)], " \"\t"); end >= 0 {
		text = text[:end]
	}
	if len(text) > longest {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(text))
	return t, err == nil
}

func jsonStamp(line []byte) (time.Time, bool) {
	var fields struct {
		TS       json.RawMessage `json:"ts"`
		Time     json.RawMessage `json:"time"`
		Stage    json.RawMessage `json:"stageTimestamp"` // audit.k8s.io/v1 Event
		Received json.RawMessage `json:"requestReceivedTimestamp"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return time.Time{}, false
	}
	for _, value := range []json.RawMessage{fields.TS, fields.Time, fields.Stage, fields.Received} {
		if len(value) == 0 {
			continue
		}
		if value[0] == '"' {
			return leadingStamp(value[1:])
		}
		return epochStamp(string(value))
	}
	return time.Time{}, false
}

// epochStamp reads a number of seconds (zap) or milliseconds (k8s.io/component-base/logs/json) since 1970.
func epochStamp(text string) (time.Time, bool) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value < 0 || value >= 1e14 {
		return time.Time{}, false
	}
	if value < 1e11 { // as seconds: before the year 5138; as milliseconds: before 1973
		value *= 1000
	}
	return time.UnixMicro(int64(value * 1000)), true
}
