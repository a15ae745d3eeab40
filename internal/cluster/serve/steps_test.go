// SPDX-License-Identifier: Apache-2.0

package serve

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
	does := func(name string, err error) step {
		return step{name, func() error {
			taken = append(taken, name)
			return err
		}}
	}
	log := slog.New(slog.DiscardHandler)
	if err := inOrder(log, []step{does("keys", nil), does("ports", failed), does("kubeconfig", nil)}); !errors.Is(err, failed) || !slices.Equal(taken, []string{"keys", "ports"}) {
		t.Errorf("took %q, %v", taken, err)
	}
	var port int
	if err := inOrder(log, []step{{"port", into(&port, func() (int, error) { return 443, nil })}}); err != nil || port != 443 {
		t.Errorf("port %d, %v", port, err)
	}
}
