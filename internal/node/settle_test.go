// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/nodeconfig"
)

// Whatever spec.join.tokenFile names, /dev/zero even, is not read without end.
func TestTokenFilesAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("abcdef.0123456789abcdef"+strings.Repeat("\n", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := complete(t)
	spec.Join = nodeconfig.Join{TokenFile: file}
	if _, err := settle(t.Context(), spec, false, func(string) {}); err == nil || !strings.Contains(err.Error(), "spec.join.tokenFile: "+file+" has more than 1024 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestTrustedIsWhatTheFileSaysNow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	spec := nodeconfig.Spec{Cluster: nodeconfig.Cluster{CertificateAuthority: []byte("told")}}
	if got := trusted(file, spec); string(got) != "told" {
		t.Errorf("without a file: %s", got)
	}
	if err := os.WriteFile(file, []byte("taken over"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := trusted(file, spec); string(got) != "taken over" {
		t.Errorf("with a file: %s", got)
	}
}
