// SPDX-License-Identifier: Apache-2.0

package scalingplan

import (
	"crypto/sha256"
	"fmt"
)

// ActivityID is the id of an activity, a UUID, the same at each look: of a kind, such as launch, about something with a UID.
func ActivityID(kind, uid, what string) string {
	sum := sha256.Sum256([]byte(kind + " " + uid + " " + what))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
