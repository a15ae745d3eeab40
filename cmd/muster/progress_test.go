// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/cluster"
)

// Rows change in place on a terminal, in colour unless somebody wants none (https://no-color.org).
func TestProgressOnATerminal(t *testing.T) {
	status := cluster.Status{Cluster: cluster.ClusterStatus{Ready: true}}
	for noColour, want := range map[string]string{
		"":  "\033[2K\033[32m✓\033[0m control plane  ready\n",
		"1": "\033[2K✓ control plane  ready\n",
	} {
		t.Setenv("NO_COLOR", noColour)
		var out bytes.Buffer
		p := newProgress(&out)
		p.moving = true
		p.show(status)
		if out.String() != want {
			t.Errorf("NO_COLOR=%s: %q", noColour, out.String())
		}
		p.show(status)
		if !strings.HasSuffix(out.String(), "\033[1A"+want) {
			t.Errorf("NO_COLOR=%s, again: %q", noColour, out.String())
		}
	}
}

func TestInterruptedInWords(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := fmt.Errorf("stopping machines: %w", context.Canceled)
	if got := inWords(ctx, err); got != err.Error() {
		t.Errorf("nobody interrupted: %q", got)
	}
	cancel()
	if got := inWords(ctx, err); got != "stopping machines: interrupted" {
		t.Errorf("interrupted: %q", got)
	}
	if got := inWords(ctx, errors.New("no such file")); got != "no such file" {
		t.Errorf("something else: %q", got)
	}
}
