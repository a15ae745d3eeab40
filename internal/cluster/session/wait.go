// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/platform/steps"
)

// Wait returns when everything that was asked for is there, and shows each status on the way: the account's, and the
// session's cluster's.
func (s Session) Wait(ctx context.Context, timeout time.Duration, show func(servicestatus.Status, servicestatus.Cluster)) (servicestatus.Status, servicestatus.Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	service := controlsocket.NewClient(s.State)
	var last servicestatus.Status
	var cluster servicestatus.Cluster
	for {
		asked := time.Now()
		status, err := service.Status(ctx)
		if err == nil {
			last = status
			cluster, _ = status.In(s.Cluster().Namespace())
			show(status, cluster)
			if cluster.AsAsked() {
				return status, cluster, nil
			}
		}
		if err := steps.Pause(ctx, pollPause(time.Since(asked))); err != nil {
			if errors.Is(context.Cause(ctx), errTimeout) {
				return last, cluster, fmt.Errorf("not everything is ready after %s%s: `muster status` shows what is missing, and `muster up` waits again", timeout, suffix(cmp.Or(cluster.Message, last.Message)))
			}
			return last, cluster, errors.New("interrupted; the cluster goes on starting in the background: `muster up` waits again, `muster down` stops it")
		}
	}
}

var errTimeout = errors.New("timeout")

// pollPause is how long a service is not asked for its status after it took some time to answer: with thousands of
// machines a status is work, and whoever waits for them is not to take a part of the service that they need.
func pollPause(took time.Duration) time.Duration {
	return min(max(pollInterval, 5*took), maxPollPause)
}

func suffix(message string) string {
	if message == "" {
		return ""
	}
	return " (" + message + ")"
}

// servingPatience is how long Joins waits for the last serving certificate: kubelets ask for it about when they turn
// Ready, and until it is there `kubectl logs` fails. After a lost audit log the step may never be known.
const servingPatience = 5 * time.Second

// Joins reads the way in of every machine of the cluster, by node name, and waits a moment for ways that are not
// complete yet.
func (s Session) Joins(ctx context.Context) ([]joinlog.Way, error) {
	c, err := planeclient.NewAdministrator(s.State)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(servingPatience)
	for {
		joins, err := joinlog.Ways(ctx, c, s.Wanted.Cluster.Spec.Name)
		if err != nil {
			return nil, err
		}
		if time.Now().After(deadline) || !slices.ContainsFunc(joins, func(j joinlog.Way) bool { return j.Steps[v1alpha1.StepServingCSRIssued] == 0 }) {
			return joins, nil
		}
		if err := steps.Pause(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}
