// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"strings"
	"testing"

	"muster.dev/muster/internal/cluster/serve"
)

// Several errors are one row.
func TestProgressOfSeveralErrors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newProgress(&out).show(serve.Status{}, serve.ClusterStatus{Message: "etcd is Starting\nauthenticator is Starting"})
	if got := out.String(); !strings.HasSuffix(got, "  control plane  setting up etcd is Starting; authenticator is Starting\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("printed %q", got)
	}
}

// Rows change in place on a terminal, in colour unless somebody wants none (https://no-color.org).
func TestProgressOnATerminal(t *testing.T) {
	cluster := serve.ClusterStatus{Ready: true}
	for noColour, want := range map[string]string{
		"":  "\033[2K\033[32m✓\033[0m control plane  ready\n",
		"1": "\033[2K✓ control plane  ready\n",
	} {
		t.Setenv("NO_COLOR", noColour)
		var out bytes.Buffer
		p := newProgress(&out)
		p.moving = true
		p.show(serve.Status{}, cluster)
		if out.String() != want {
			t.Errorf("NO_COLOR=%s: %q", noColour, out.String())
		}
		p.show(serve.Status{}, cluster)
		if !strings.HasSuffix(out.String(), "\033[1A"+want) {
			t.Errorf("NO_COLOR=%s, again: %q", noColour, out.String())
		}
	}
}
