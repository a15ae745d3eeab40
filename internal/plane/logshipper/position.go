// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"slices"
	"time"
)

// Position is how far a log was read: all lines that begin before an offset in a file are in the log store. Its zero
// value is the beginning of the oldest file.
type Position struct {
	// File is the identity of the file, and Offset is in bytes.
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	// Time of the last line that had one.
	Time time.Time `json:"time,omitzero"`
	// Off says that the log was switched off since.
	Off bool `json:"off,omitempty"`
}

// locate finds the file to read next among those of a log, the oldest first, by their identities; at is len(files) if
// there is none. Lost says that the file that was read last is gone, and perhaps others after it.
func locate(files []string, from Position) (at int, offset int64, lost bool) {
	if from.File == "" {
		return 0, 0, false
	}
	if at := slices.Index(files, from.File); at >= 0 {
		return at, from.Offset, false
	}
	return 0, 0, true
}
