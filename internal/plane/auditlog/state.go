// SPDX-License-Identifier: Apache-2.0

package auditlog

import "time"

// promised is how far the log is to reach back.
const promised = 24 * time.Hour

// State says what the file of kept lines holds.
type State struct {
	// Whole is since when no line is missing; zero while there are none.
	Whole time.Time
	// Lost is true if there were lines before that, which are gone.
	Lost bool
}

// Short reports whether lines are gone that are younger than a day.
func (s State) Short(now time.Time) bool { return s.Lost && s.Whole.After(now.Add(-promised)) }

// Merge is the state of several logs that are read as one.
func Merge(states ...State) State {
	var all State
	for _, s := range states {
		switch {
		case s.Whole.IsZero():
		case all.Whole.IsZero(), s.Lost && !all.Lost:
			all = s
		case s.Lost == all.Lost && s.Whole.After(all.Whole) == s.Lost: // the last that lost lines, or the first line
			all.Whole = s.Whole
		}
	}
	return all
}
