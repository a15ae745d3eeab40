// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// Process number one may start no program: it asks for a token made in it.
func TestEventsOfANodeByRoleAreToldByAToken(t *testing.T) {
	w := newWatched(t)
	put(t, w.Kubeconfig, []byte("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: none, interactiveMode: Never}}}]\n"))
	asked := 0
	w.Token = func(context.Context) (string, error) {
		asked++
		return "", errors.New("instance metadata is down")
	}
	if err := w.postEvents(t.Context(), []event{{Reason: "A"}}); err == nil || !strings.Contains(err.Error(), "instance metadata is down") || asked != 1 {
		t.Errorf("asked %d times for a token: %v", asked, err)
	}
}
