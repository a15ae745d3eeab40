// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
)

// A step that fails is the last one, and its error is that of the start.
func TestInOrder(t *testing.T) {
	var taken []string
	failed := errors.New("no room")
	does := func(name string, err error) Step {
		return New(name, func() error {
			taken = append(taken, name)
			return err
		})
	}
	log := slog.New(slog.DiscardHandler)
	if err := InOrder(log, does("keys", nil), does("disk", failed).If(false), does("ports", failed).If(true), does("kubeconfig", nil)); !errors.Is(err, failed) || !slices.Equal(taken, []string{"keys", "ports"}) {
		t.Errorf("took %q, %v", taken, err)
	}
	var port int
	if err := InOrder(log, Into("port", &port, func() (int, error) { return 443, nil })); err != nil || port != 443 {
		t.Errorf("port %d, %v", port, err)
	}
	if err := InOrder(log, Option("range", "--range", func() error { return failed })); !errors.Is(err, failed) || err.Error() != "--range: no room" {
		t.Errorf("an option: %v", err)
	}
}
