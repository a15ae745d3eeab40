// SPDX-License-Identifier: Apache-2.0

package stackrecord

import (
	"cmp"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
)

// Store reads and writes stacks.
type Store struct {
	Management client.Client
	Key        cipher.AEAD
}

// Create makes a stack. The error is such that apierrors.IsAlreadyExists is true if there is one of its ID.
func (s Store) Create(ctx context.Context, r *Record) error {
	object := &v1alpha1.Stack{}
	object.Name = r.ID
	if err := s.write(r, object); err != nil {
		return err
	}
	if err := s.Management.Create(ctx, object); err != nil {
		return fmt.Errorf("making the stack %s: %w", r.Name, err)
	}
	r.Created = object.CreationTimestamp.Time
	return nil
}

// Get reads a stack by its ID.
func (s Store) Get(ctx context.Context, id string) (*Record, error) {
	object := &v1alpha1.Stack{}
	if err := s.Management.Get(ctx, client.ObjectKey{Name: id}, object); err != nil {
		return nil, fmt.Errorf("reading the stack %s: %w", id, err)
	}
	return s.read(object)
}

// Named finds the stack of a name that is not deleted; nil if there is none.
func (s Store) Named(ctx context.Context, name string) (*Record, error) {
	var all v1alpha1.StackList
	if err := s.Management.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing stacks: %w", err)
	}
	for i := range all.Items {
		if object := &all.Items[i]; object.Spec.Name == name && object.Status.Status != string(stack.DeleteComplete) {
			return s.read(object)
		}
	}
	return nil, nil //nolint:nilnil // nothing is found
}

// Pending are the IDs of stacks of which an operation is under way, and those of stacks that are deleted, oldest first.
func (s Store) Pending(ctx context.Context) (pending, deleted []string, err error) {
	var all v1alpha1.StackList
	if err := s.Management.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil { // every second, of all stacks, and nothing is changed
		return nil, nil, fmt.Errorf("listing stacks: %w", err)
	}
	slices.SortFunc(all.Items, func(a, b v1alpha1.Stack) int {
		return cmp.Or(timeOf(a.Status.Deleted).Compare(timeOf(b.Status.Deleted)), cmp.Compare(a.Name, b.Name))
	})
	for i := range all.Items {
		switch status := stack.Status(all.Items[i].Status.Status); {
		case status.InProgress():
			pending = append(pending, all.Items[i].Name)
		case status == stack.DeleteComplete:
			deleted = append(deleted, all.Items[i].Name)
		}
	}
	return pending, deleted, nil
}

// timeOf is a time that may be missing.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// List reads all stacks. Stacks that cannot be read are left out, and the error says why.
func (s Store) List(ctx context.Context) ([]*Record, error) {
	var all v1alpha1.StackList
	if err := s.Management.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing stacks: %w", err)
	}
	var records []*Record
	var errs []error
	for i := range all.Items {
		r, err := s.read(&all.Items[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		records = append(records, r)
	}
	return records, errors.Join(errs...)
}

// Update changes a stack. An error of change leaves it as it is, and is returned. The function is called again if somebody else
// changed the stack meanwhile.
func (s Store) Update(ctx context.Context, id string, change func(*Record) error) (*Record, error) {
	for {
		object := &v1alpha1.Stack{}
		if err := s.Management.Get(ctx, client.ObjectKey{Name: id}, object); err != nil {
			return nil, fmt.Errorf("reading the stack %s: %w", id, err)
		}
		r, err := s.read(object)
		if err != nil {
			return nil, err
		}
		if err := change(r); err != nil {
			return nil, err
		}
		if err := s.write(r, object); err != nil {
			return nil, err
		}
		err = s.Management.Update(ctx, object)
		if err == nil {
			return r, nil
		}
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return nil, fmt.Errorf("changing the stack %s: %w", r.Name, err)
		}
	}
}

// Forget deletes the object of a stack.
func (s Store) Forget(ctx context.Context, id string) error {
	object := &v1alpha1.Stack{}
	object.Name = id
	if err := s.Management.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("forgetting the stack %s: %w", id, err)
	}
	return nil
}

// write puts a stack into its object.
func (s Store) write(r *Record, object *v1alpha1.Stack) error {
	r.Secrets = map[string]string{}
	object.Status.Outputs = nil
	for _, output := range r.Outputs {
		if output.Secret {
			r.Secrets[output.Name] = output.Value
		}
		object.Status.Outputs = append(object.Status.Outputs, v1alpha1.StackOutput{Name: output.Name, Value: output.Shown(), Description: output.Description, Export: output.Export})
	}
	sealed, err := seal(s.Key, r.ID, r.Hidden)
	if err != nil {
		return err
	}
	object.Spec = v1alpha1.StackSpec{
		Name: r.Name, Description: r.Description, Template: r.Asked.Template, Capabilities: r.Asked.Capabilities, RoleARN: r.Operation.RoleARN, NotificationARNs: r.Asked.NotificationARNs,
		OnFailure: string(r.State.OnFailure), TerminationProtection: r.TerminationProtection,
	}
	for key, value := range r.Asked.Tags {
		if object.Spec.Tags == nil {
			object.Spec.Tags = v1alpha1.Tags{}
		}
		object.Spec.Tags[key] = v1alpha1.TagValue(value)
	}
	if plan, err := stackplan.Read(r.Asked, stackplan.Place{}); err == nil {
		for _, p := range plan.Shown() {
			object.Spec.Parameters = append(object.Spec.Parameters, v1alpha1.StackParameter{Name: p.Name, Value: p.Value})
		}
	}
	object.Status.Status, object.Status.Reason, object.Status.Events, object.Status.Sealed = string(r.State.Status), r.State.Reason, r.Events, sealed
	object.Status.Updated, object.Status.Deleted, object.Status.Resources = nil, nil, nil
	if !r.Updated.IsZero() {
		object.Status.Updated = &metav1.Time{Time: r.Updated}
	}
	if !r.Deleted.IsZero() {
		object.Status.Deleted = &metav1.Time{Time: r.Deleted}
	}
	for _, one := range r.State.Resources {
		object.Status.Resources = append(object.Status.Resources, v1alpha1.StackResource{
			LogicalID: one.LogicalID, PhysicalID: one.PhysicalID, Type: one.Type, Status: string(one.Status), Reason: one.Reason, Time: metav1.NewTime(r.Changed[one.Serial]),
		})
	}
	return nil
}

// read is the stack of an object.
func (s Store) read(object *v1alpha1.Stack) (*Record, error) {
	r := &Record{
		ID: object.Name, Name: object.Spec.Name, Description: object.Spec.Description, TerminationProtection: object.Spec.TerminationProtection, Created: object.CreationTimestamp.Time,
		Events: slices.Clone(object.Status.Events),
	}
	if err := unseal(s.Key, r.ID, object.Status.Sealed, &r.Hidden); err != nil {
		return nil, fmt.Errorf("the stack %s: %w", object.Spec.Name, err)
	}
	r.Updated, r.Deleted = timeOf(object.Status.Updated), timeOf(object.Status.Deleted)
	for _, output := range object.Status.Outputs {
		one := Output{Name: output.Name, Value: output.Value, Description: output.Description, Export: output.Export}
		if secret, ok := r.Secrets[output.Name]; ok {
			one.Value, one.Secret = secret, true
		}
		r.Outputs = append(r.Outputs, one)
	}
	r.Changed = maps.Clone(r.Changed)
	return r, nil
}
