// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/plane/readiness"
)

// WaitForCluster returns the cluster when it is Ready, or an error as soon as the service refuses to start it.
func WaitForCluster(ctx context.Context, talk io.Writer, p *Client, key client.ObjectKey, timeout, interval time.Duration) (*v1alpha1.Cluster, error) {
	progress := terminal.NewWaitProgress(talk)
	defer progress.End()
	cluster, state := &v1alpha1.Cluster{}, ""
	err := terminal.Poll(ctx, timeout, interval, func(ctx context.Context) (bool, error) {
		read := &v1alpha1.Cluster{}
		if err := p.ReadKey(ctx, key, read); apierrors.IsNotFound(err) {
			return false, terminal.Fatal(fmt.Errorf("cluster %q is gone", terminal.Or(cluster.Spec.Name, key.Name)))
		} else if err != nil {
			return false, err
		}
		cluster = read
		if cluster.DeletionTimestamp != nil {
			return false, terminal.Fatal(fmt.Errorf("cluster %q is being deleted", cluster.Spec.Name))
		}
		if why := readiness.Refusal(cluster); why != "" {
			return false, terminal.Fatal(fmt.Errorf("cluster %q is not started: %s; muster delete cluster %[1]s removes it", cluster.Spec.Name, why))
		}
		state = ClusterState(cluster)
		progress.Show(state)
		return readiness.Word(cluster, cluster.Status.Conditions) == readiness.ReasonReady, nil
	})
	if errors.Is(err, terminal.ErrTimeUp) {
		progress.End()
		return cluster, fmt.Errorf("%s: %w; it goes on: muster get clusters", terminal.Or(state, "cluster "+key.Name), err)
	}
	return cluster, err
}

// widestMessage is the longest part of a condition's message that is shown while waiting.
const widestMessage = 200

// ClusterState says in a line how a cluster is: "cluster home: Creating: etcd starts".
func ClusterState(c *v1alpha1.Cluster) string {
	message, _, _ := strings.Cut(readiness.Message(c.Status.Conditions), "\n")
	return "cluster " + c.Spec.Name + ": " + readiness.Word(c, c.Status.Conditions) + Because(terminal.Shorten(message, widestMessage))
}
