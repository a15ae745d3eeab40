// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/host"
)

// What is not bounded is said, in one line, and does not count as a fault of the account.
func TestUnboundedMachines(t *testing.T) {
	if got := local.Unbounded(nil); got != "" {
		t.Errorf("machines that are bounded: %q", got)
	}
	s := newService(t)
	s.found, s.boundNote = true, local.Unbounded(errors.Join(fmt.Errorf("limiting control group /muster: %w: 5 bytes", host.ErrInUse), errors.New("more")))
	const want = "some machines that ran before an upgrade are not held to their memory and processes yet (limiting control group /muster: more is in use: 5 bytes; more); " +
		"nothing is ended for that, and they are when they use less, or boot next"
	if status := s.Status(t.Context()); !slices.Equal(status.Notes, []string{want}) || status.Message != "" || !status.Ready() {
		t.Errorf("%+v", status)
	}
}
