// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/plane/readiness"
)

// Because returns ": " and the message, or nothing for an empty message.
func Because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// WaitConfig says which node group to wait for and how long.
type WaitConfig struct {
	Group             *v1alpha1.NodeGroup
	Timeout, Interval time.Duration
}

// WaitForNodes returns when as many nodes of a group are Ready as it is to have.
func WaitForNodes(ctx context.Context, talk io.Writer, p *Client, cfg WaitConfig) error {
	progress := terminal.NewWaitProgress(talk)
	defer progress.End()
	state := ""
	err := terminal.Poll(ctx, cfg.Timeout, cfg.Interval, func(ctx context.Context) (bool, error) {
		var list v1alpha1.NodeGroupList
		if err := p.ReadAll(ctx, &list); err != nil {
			return false, err
		}
		for i := range list.Items {
			g := &list.Items[i]
			if client.ObjectKeyFromObject(g) != client.ObjectKeyFromObject(cfg.Group) {
				continue
			}
			want := g.Spec.ScalingConfig.DesiredSize
			state = "nodegroup " + NameOf(g) + ": " + readiness.ReadyOf(g.Status.ReadyReplicas, want, "node", "nodes")
			if g.Status.Replicas > want && g.Status.ReadyReplicas <= want {
				state += ", " + terminal.Count(g.Status.Replicas-want, "machine", "machines") + " too many"
			}
			state += Because(readiness.Obstacle(g))
			progress.Show(state)
			return g.Status.ObservedGeneration >= g.Generation && g.Status.Replicas == want && g.Status.ReadyReplicas == want, nil
		}
		return false, terminal.Fatal(fmt.Errorf("nodegroup %q is gone", NameOf(cfg.Group)))
	})
	if errors.Is(err, terminal.ErrTimeUp) {
		progress.End()
		return fmt.Errorf("%s: %w%s", terminal.Or(state, "nodegroup "+NameOf(cfg.Group)), err, p.stragglers(ctx, cfg.Group))
	}
	return err
}

// stragglers lists the machines of a group that are not Ready, five at most, with the last step of each.
func (p *Client) stragglers(ctx context.Context, group *v1alpha1.NodeGroup) string {
	var list v1alpha1.MachineList
	if err := p.ReadAll(ctx, &list); err != nil {
		return ""
	}
	const most = 5
	var lines []string
	for i := range list.Items {
		m := &list.Items[i]
		if GroupOf(m) != client.ObjectKeyFromObject(group) || m.Status.Phase == v1alpha1.MachineReady || m.Spec.WarmPool != "" {
			continue
		}
		if len(lines) == most {
			lines = append(lines, "\n  and others: muster get machines")
			break
		}
		step := "it was never launched"
		if n := len(m.Status.Join); n > 0 {
			step = "last step: " + string(m.Status.Join[n-1].Step)
		}
		lines = append(lines, fmt.Sprintf("\n  %s is %s; %s%s; more: muster logs %s", m.Name, terminal.Or(string(m.Status.Phase), string(v1alpha1.MachinePending)), step, Kept(m), m.Name))
	}
	return strings.Join(lines, "")
}

// Kept returns "; " and what keeps a machine from becoming Ready other than time, or "".
func Kept(m *v1alpha1.Machine) string {
	if why := readiness.KeptFrom(m); why != "" {
		return "; " + why
	}
	return ""
}
