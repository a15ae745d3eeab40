// SPDX-License-Identifier: Apache-2.0

package change

import (
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/api/v1alpha1"
)

// newID returns an id that says when it was made, to the millisecond (RFC 9562, version 7): objects know only the
// second.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Time is when an update was asked for. Ids of updates that an earlier Muster made say nothing of it.
func Time(u v1alpha1.Update) time.Time {
	id, err := uuid.Parse(u.Name)
	if err != nil || id.Version() != 7 {
		return u.CreationTimestamp.Time
	}
	return time.Unix(id.Time().UnixTime())
}
