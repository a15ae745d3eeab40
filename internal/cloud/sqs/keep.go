// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iampolicy"
)

// ErrForeign is the error of Keep for a queue of the name that somebody else made.
var ErrForeign = errors.New("the queue is somebody else's, and is left as it is")

// Kept is a queue that the account keeps for a cluster.
type Kept struct {
	Name string
	// Namespace is that of the cluster. The queue's record has it as its label muster.dev/cluster, which no request sets.
	Namespace string
	// Policy is the queue's policy. It names services, and no users or roles.
	Policy string
	// Attributes are set besides; see the API reference of SQS, SetQueueAttributes.
	Attributes map[string]string
}

// Keep makes a queue, or gives one that was made so its policy and attributes back. Messages stay.
func Keep(ctx context.Context, management client.Client, k Kept, now time.Time) error {
	document, err := iampolicy.Parse(iampolicy.OfResource, k.Policy)
	if err != nil {
		return fmt.Errorf("reading the policy of queue %s: %w", k.Name, err)
	}
	policy, err := document.Text()
	if err != nil {
		return fmt.Errorf("writing the policy of queue %s: %w", k.Name, err)
	}
	found, err := queues.Get(ctx, management, queues.NameOf(k.Name))
	switch {
	case apierrors.IsNotFound(err):
		return queues.Create(ctx, management, &record{
			ID: queues.NameOf(k.Name), Name: k.Name, Labels: map[string]string{v1alpha1.LabelCluster: k.Namespace},
			Data: queue{Messages: uuid.NewString(), Attributes: k.Attributes, Policy: policy, Modified: now.Unix()},
		})
	case err != nil:
		return err
	case found.Labels[v1alpha1.LabelCluster] != k.Namespace:
		return fmt.Errorf("queue %s: %w", k.Name, ErrForeign)
	case found.Data.Policy == policy && maps.Equal(found.Data.Attributes, k.Attributes):
		return nil
	}
	_, err = queues.Update(ctx, management, found.ID, func(r *record) error {
		r.Data.Attributes, r.Data.Policy, r.Data.Modified = k.Attributes, policy, now.Unix()
		return nil
	})
	return err
}

// Forget deletes the queue that [Keep] made for a cluster. Its messages are removed when the service starts the next time
// ([Queues.Sweep]).
func Forget(ctx context.Context, management client.Client, name, namespace string) error {
	found, err := queues.Get(ctx, management, queues.NameOf(name))
	if apierrors.IsNotFound(err) || err == nil && found.Labels[v1alpha1.LabelCluster] != namespace {
		return nil
	}
	if err == nil {
		err = queues.Delete(ctx, management, found.ID)
	}
	return client.IgnoreNotFound(err)
}
