// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/node/discovery"
	"muster.dev/muster/internal/node/nodeconfig"
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

func contextThatEnded(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}

// A hash beside an authority is not for show: the authority must be the one that it names, and only that one counts.
func TestSettleComparesTheAuthorityWithItsHash(t *testing.T) {
	spec := complete(t)
	pins, err := discovery.Pins(spec.Cluster.CertificateAuthority)
	if err != nil {
		t.Fatal(err)
	}
	own, other := spec.Cluster.CertificateAuthority, newAuthority(t)
	spec.Join.CACertHashes = pins
	spec.Cluster.CertificateAuthority = append(bytes.Clone(own), other...)
	if got, err := settle(t.Context(), spec, false, func(string) {}); err != nil || !bytes.Equal(got.Cluster.CertificateAuthority, own) {
		t.Errorf("one that no hash names is trusted: %v", err)
	}
	spec.Cluster.CertificateAuthority = other
	if _, err := settle(t.Context(), spec, false, func(string) {}); err == nil || !strings.Contains(err.Error(), "spec.join.caCertHashes") || !strings.Contains(err.Error(), "another cluster's") {
		t.Errorf("got %v", err)
	}
}

// A discovery file is asked, though a launch template names the authorities. The authorities that it finds must agree
// with the template.
func TestSettleAsksTheDiscoveryFile(t *testing.T) {
	spec := complete(t)
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	content := "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: https://127.0.0.1:1\n    certificate-authority-data: "
	if err := os.WriteFile(file, []byte(content+base64.StdEncoding.EncodeToString(newAuthority(t))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec.Join.DiscoveryFile = file
	var refused *discovery.Error
	if _, err := settle(t.Context(), spec, false, func(string) {}); !errors.As(err, &refused) || refused.Reason != discovery.WrongCA {
		t.Errorf("got %v", err)
	}
	spec.Join.DiscoveryFile = file + ".gone"
	if _, err := settle(t.Context(), spec, false, func(string) {}); !errors.As(err, &refused) || refused.Reason != discovery.BadFile {
		t.Errorf("it was not asked: %v", err)
	}
}
