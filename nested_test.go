// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"os"
	"os/exec"
	"testing"
)

// A program of a nested module that imports Muster's packages is built with what these require: its go.mod has to say so, too, and nothing but the
// build of that program would tell.
func TestNestedProgramsHaveTheirModules(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "-C", "egress", "list", "-mod=readonly", "-deps", "./...")
	command.Env = append(os.Environ(), "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("egress: run `go -C egress mod tidy`: %v\n%s", err, out)
	}
}
