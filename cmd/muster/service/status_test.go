// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"testing"

	"muster.dev/muster/cmd/muster/console"
	"muster.dev/muster/internal/cluster/serve"
)

// Of machines that are not as they should be it is told where to look further; of the others nothing.
func TestStatusOfTroubledMachines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message, out, talk string
	}{
		"well":    {"", "", ""},
		"in need": {"it is on its way in", "\nMACHINE   NODE   PHASE     MESSAGE\ni-1       -      Joining   it is on its way in\n", "What goes on in a machine is in its log: muster logs MACHINE\n"},
	} {
		var out, talk bytes.Buffer
		machines := []serve.MachineStatus{{Name: "i-1", Phase: "Joining", Message: test.message}}
		if err := printTroubledMachines(&console.Options{Streams: console.Streams{Out: &out, Err: &talk}}, machines); err != nil {
			t.Fatal(err)
		}
		if out.String() != test.out || talk.String() != test.talk {
			t.Errorf("%s: printed %q, said %q", name, &out, &talk)
		}
	}
}
