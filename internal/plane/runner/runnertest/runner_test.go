// SPDX-License-Identifier: Apache-2.0

package runnertest

import (
	"context"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	Run(t, func(*testing.T) World {
		place := NewPlace()
		return World{
			Begin: func(t *testing.T) (runner.Runner, func()) {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				return place.New(ctx), cancel
			},
			Spec: func(name string, after ...string) component.Spec {
				return component.Spec{Name: name, Path: "/bin/" + name, After: after}
			},
			Break: func(name string) { place.Break(name, "it does not work today") },
			Mend:  place.Mend, Kill: place.Kill, Replace: place.Replace, Ends: place.Ends,
		}
	})
}
