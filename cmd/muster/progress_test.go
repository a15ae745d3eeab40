// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

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
