// SPDX-License-Identifier: Apache-2.0

package memorylimit

import (
	"strings"
	"testing"
)

func TestPlanes(t *testing.T) {
	t.Parallel()
	one, other := planes("/var/lib/muster"), planes("/home/me/muster")
	if one == other || strings.HasPrefix(one, "/muster/") {
		t.Errorf("%s and %s", one, other)
	}
}
