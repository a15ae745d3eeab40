// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"strings"
	"testing"
)

func TestMemoryGroups(t *testing.T) {
	t.Parallel()
	one, other := memoryGroups("/var/lib/muster"), memoryGroups("/home/me/muster")
	if one == other || strings.HasPrefix(one, "/muster/") {
		t.Errorf("%s and %s", one, other)
	}
}
