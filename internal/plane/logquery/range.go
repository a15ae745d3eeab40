// SPDX-License-Identifier: Apache-2.0

package logquery

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Range is a range of time as people write it: the time since so long ago, or from Start to End.
type Range struct {
	// Since is how long ago the range begins, where Start is empty.
	Since time.Duration
	// Start and End are moments such as 2026-11-20T12:00:00Z. End is now where it is empty, and is given with Start alone.
	Start, End string
}

// Times returns the first and the last moment of the range. Errors name what is wrong with flag before it, such as -- of a command.
func (r Range) Times(now time.Time, flag string) (start, end time.Time, err error) {
	moment := func(name, text string) time.Time {
		at, wrong := time.Parse(time.RFC3339, text)
		if wrong != nil {
			err = cmp.Or(err, fmt.Errorf("invalid %s%s %q: must be of the form 2026-11-20T12:00:00Z", flag, name, text))
		}
		return at
	}
	start, end = now.Add(-r.Since), now
	switch {
	case r.Start == "" && r.End != "":
		return start, end, errors.New(flag + "end goes with " + flag + "start")
	case r.Start == "" && r.Since <= 0:
		return start, end, fmt.Errorf("invalid %ssince %s: must be a time ago such as 10m", flag, r.Since)
	}
	if r.Start != "" {
		start = moment("start", r.Start)
	}
	if r.End != "" {
		end = moment("end", r.End)
	}
	if err == nil && end.Before(start) {
		err = fmt.Errorf("the range of time ends at %s, before it begins at %s", end.Format(time.RFC3339), start.Format(time.RFC3339))
	}
	return start, end, err
}
