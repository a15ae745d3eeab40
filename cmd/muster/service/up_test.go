// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"testing"
)

// A context of the same name that belongs to another cluster shows the other's nodes.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	if got := firstLook("muster", nil); got != "kubectl --context muster get nodes" {
		t.Errorf("got %q", got)
	}
	if got := firstLook("muster", errors.New("belongs to another cluster")); got != "muster get nodes" {
		t.Errorf("got %q", got)
	}
}
