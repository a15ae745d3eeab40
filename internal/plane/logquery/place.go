// SPDX-License-Identifier: Apache-2.0

package logquery

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/plane/logevent"
)

// Place is where an event is in the order of events: that of their times, and where those are equal, that of their files and
// of their offsets in bytes.
type Place struct {
	Time   time.Time
	File   string
	Offset int64
}

// Compare is negative for a place before the other one.
func (p Place) Compare(other Place) int {
	return cmp.Or(p.Time.Compare(other.Time), strings.Compare(p.File, other.File), cmp.Compare(p.Offset, other.Offset))
}

// Pointer is the identity of the event: what Insights calls @ptr. It has all digits of the offset, so that those of a file
// are sorted where times are equal.
func (p Place) Pointer() string { return fmt.Sprintf("%s-%020d", p.File, p.Offset) }

// String is the place for ParsePlace.
func (p Place) String() string {
	return fmt.Sprintf("%d/%s/%d", p.Time.UnixNano(), p.File, p.Offset)
}

// ParsePlace reads what String wrote.
func ParsePlace(text string) (Place, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return Place{}, fmt.Errorf("%.100q is not a place between log events", text)
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return Place{}, fmt.Errorf("reading the time of a place: %w", err)
	}
	offset, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Place{}, fmt.Errorf("reading the offset of a place: %w", err)
	}
	return Place{Time: time.Unix(0, at).UTC(), File: parts[1], Offset: offset}, nil
}

// placeOf is the place of a row.
func placeOf(row map[string]string) (Place, error) {
	at, err := time.Parse(time.RFC3339Nano, row[logevent.Time])
	if err != nil {
		return Place{}, fmt.Errorf("reading a row of the log store: its %s: %w", logevent.Time, err)
	}
	offset, err := strconv.ParseInt(row[logevent.Offset], 10, 64)
	if err != nil || row[logevent.File] == "" {
		return Place{}, fmt.Errorf("reading a row of the log store: %s %q and %s %q are not those of a line", logevent.File, row[logevent.File], logevent.Offset, row[logevent.Offset])
	}
	return Place{Time: at.UTC(), File: row[logevent.File], Offset: offset}, nil
}
