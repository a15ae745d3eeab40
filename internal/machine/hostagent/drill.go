// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"fmt"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/drill"
	"muster.dev/muster/internal/machine/machine"
)

// Drill asks that a machine have what a drill gives it, and nothing else.
type Drill struct {
	Machine
	Effect drill.Effect `json:"effect"`
}

func (a Drill) validate() error {
	if a.Effect.Held != "" && !slices.Contains(drill.Held(), a.Effect.Held) {
		return fmt.Errorf("invalid program %.40q to hold: must be one of %q", a.Effect.Held, drill.Held())
	}
	return a.Machine.validate()
}

// Driller gives machines of the host the trouble of drills.
type Driller interface {
	// Drill has a machine have an effect, and no earlier one.
	Drill(ctx context.Context, ask Drill) error
}

func drilling() operation[Drill, nothing] { return silent("drill", Host.Drill) }

// Drill implements [Driller].
func (h *Agent) Drill(ctx context.Context, ask Drill) error {
	machines, err := machine.Ask[machine.Driller](h.providers, ask.Provider, v1alpha1.RunPods)
	if err != nil {
		return err
	}
	return machines.Drill(ctx, ask.ID, ask.Effect)
}

// Drill implements [Driller].
func (c *Client) Drill(ctx context.Context, request Drill) error {
	_, err := ask(ctx, c, drilling(), request)
	return err
}

// driller has machines that can be in trouble.
type driller struct{ provider }

// Drill implements [machine.Driller].
func (d driller) Drill(ctx context.Context, id string, effect drill.Effect) error {
	return d.host.Drill(ctx, Drill{d.of(id), effect})
}
