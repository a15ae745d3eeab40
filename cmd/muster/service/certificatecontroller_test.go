// SPDX-License-Identifier: Apache-2.0

package service

import (
	"path/filepath"
	"strings"
	"testing"
)

// The rest is in test/scripts, where there is a program beside the other.
func TestCertificateControllerThatIsNotThere(t *testing.T) {
	program := filepath.Join(t.TempDir(), certificateControllerProgram)
	err := becomeCertificateController(program, NewCertificateControllerCommand())
	if err == nil || !strings.Contains(err.Error(), program+" not found") {
		t.Errorf("%v", err)
	}
}
