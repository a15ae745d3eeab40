// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
)

// ErrForeign is the error of Keep for a rule of the name that somebody else made.
var ErrForeign = errors.New("the rule is somebody else's, and is left as it is")

// Kept is a rule that the account keeps for a cluster.
type Kept struct {
	Name string
	// Namespace is that of the cluster. The rule's record has it as its label muster.dev/cluster, which no request sets.
	Namespace string
	// Pattern is the rule's event pattern, and Queue the one target.
	Pattern     string
	Queue       arn.ARN
	Description string
}

// Keep makes a rule, or gives one that was made so its pattern, target and state back.
func Keep(ctx context.Context, management client.Client, k Kept) error {
	want := rule{Pattern: k.Pattern, State: enabled, Description: k.Description, Targets: []target{{ID: "queue", ARN: k.Queue.String()}}}
	found, err := rules.Get(ctx, management, rules.NameOf(k.Name))
	switch {
	case apierrors.IsNotFound(err):
		return rules.Create(ctx, management, &record{ID: rules.NameOf(k.Name), Name: k.Name, Labels: map[string]string{v1alpha1.LabelCluster: k.Namespace}, Data: want})
	case err != nil:
		return err
	case found.Labels[v1alpha1.LabelCluster] != k.Namespace:
		return fmt.Errorf("rule %s: %w", k.Name, ErrForeign)
	case reflect.DeepEqual(found.Data, want):
		return nil
	}
	_, err = rules.Update(ctx, management, found.ID, func(r *record) error {
		r.Data = want
		return nil
	})
	return err
}

// Forget deletes the rule that [Keep] made for a cluster.
func Forget(ctx context.Context, management client.Client, name, namespace string) error {
	found, err := rules.Get(ctx, management, rules.NameOf(name))
	if apierrors.IsNotFound(err) || err == nil && found.Labels[v1alpha1.LabelCluster] != namespace {
		return nil
	}
	if err == nil {
		err = rules.Delete(ctx, management, found.ID)
	}
	return client.IgnoreNotFound(err)
}
