// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// Records are the records of a noun, and those that are there though nobody made them: the main route table and the
// default network ACL of each VPC. Such a one is kept from the first change on.
type Records[T any] struct {
	EC2  *EC2
	Kind ec2id.Kind
	Of   awsrecord.Kind[T]
	// VPC is the VPC that a record goes with, nil for what can be without one.
	VPC func(*T) string
	// Implied returns the records that exist without a request, such as those that come with a VPC, whether they are
	// stored already or not. It is nil for nouns without such records.
	Implied func(context.Context) ([]awsrecord.Record[T], error)
	// NewID makes the id of a new record of a random one. It is nil where ids say nothing.
	NewID func(random string) string
}

// Record is one of them.
type Record[T any] = awsrecord.Record[T]

// List are all records whose VPC is there.
func (r Records[T]) List(ctx context.Context) ([]Record[T], error) {
	all, err := r.Of.List(ctx, r.EC2.Management)
	if err != nil {
		return nil, RecordsAway(err)
	}
	if r.VPC != nil {
		living, err := r.EC2.VPCs(ctx)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(one Record[T]) bool { return living[r.VPC(&one.Data)] == nil })
	}
	if r.Implied != nil {
		implied, err := r.Implied(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range implied {
			if !slices.ContainsFunc(all, func(kept Record[T]) bool { return kept.ID == one.ID }) {
				all = append(all, one)
			}
		}
	}
	return all, nil
}

// Get reads one. The error says that the id is malformed, or that nothing has it.
func (r Records[T]) Get(ctx context.Context, id string) (*Record[T], error) {
	if err := r.Kind.Check(id); err != nil {
		return nil, err
	}
	all, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(one Record[T]) bool { return one.ID == id })
	if i < 0 {
		return nil, r.Kind.NotFound(id)
	}
	return &all[i], nil
}

// Hold reads a record that goes with a VPC, and holds the lock of that VPC until release is called.
func (r Records[T]) Hold(ctx context.Context, id string) (found *Record[T], release func(), err error) {
	if found, err = r.Get(ctx, id); err != nil {
		return nil, nil, err
	}
	release = r.EC2.Locks.Hold(r.VPC(&found.Data))
	if found, err = r.Get(ctx, id); err != nil {
		release()
		return nil, nil, err
	}
	return found, release, nil
}

// Create makes one with a new id and tags.
func (r Records[T]) Create(ctx context.Context, data T, tags map[string]string, t awsresource.Token) (*Record[T], error) {
	if t.Key.Token != "" {
		all, err := r.List(ctx)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if made, err := t.Made(Marked(all[i].Labels, all[i].Annotations)); made || err != nil {
				return &all[i], err
			}
		}
	}
	id := NewID(r.Kind)
	if r.NewID != nil {
		id = r.NewID(id)
	}
	made := &Record[T]{ID: id, Data: data, Tags: awsresource.KeptTags(tags)}
	object := Marked(nil, nil)
	t.Mark(object)
	made.Labels, made.Annotations = object.Labels, object.Annotations
	if err := r.Of.Create(ctx, r.EC2.Management, made); err != nil {
		return nil, RecordsAway(err)
	}
	return made, nil
}

// Update changes one.
func (r Records[T]) Update(ctx context.Context, id string, change func(*Record[T]) error) error {
	for {
		found, err := r.Get(ctx, id)
		if err != nil {
			return err
		}
		_, err = r.Of.Update(ctx, r.EC2.Management, id, change)
		if !apierrors.IsNotFound(err) {
			return RecordsAway(err)
		}
		if r.Implied == nil {
			return r.Kind.NotFound(id)
		}
		if err := change(found); err != nil {
			return err
		}
		if err := r.Of.Create(ctx, r.EC2.Management, found); !apierrors.IsAlreadyExists(err) {
			return RecordsAway(err)
		}
	}
}

// Remove deletes one, which may be gone.
func (r Records[T]) Remove(ctx context.Context, id string) error {
	if err := r.Of.Delete(ctx, r.EC2.Management, id); err != nil && !apierrors.IsNotFound(err) {
		return RecordsAway(err)
	}
	return nil
}

// Sweep removes those whose VPC is gone.
func (r Records[T]) Sweep(ctx context.Context, living map[string]bool) error {
	all, err := r.Of.List(ctx, r.EC2.Management)
	if err != nil {
		return RecordsAway(err)
	}
	for i := range all {
		if !living[r.VPC(&all[i].Data)] {
			if err := r.Remove(ctx, all[i].ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Tagger is that of the noun. Conditions are those of the resource's type.
func (r Records[T]) Tagger(resource string, conditions func(*awsfront.Call, *Record[T]) map[string][]string) Tagger {
	return Tagger{
		Kind: r.Kind, Resource: resource,
		About: func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
			found, err := r.Get(ctx, id)
			if err != nil {
				return awsfront.Target{}, err
			}
			return r.EC2.Target(call, resource, id, found.Tags, conditions(call, found)), nil
		},
		Change: func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error {
			return r.Update(ctx, id, func(found *Record[T]) error {
				changed, err := change(awsresource.PlainTags(found.Tags))
				if err != nil {
					return err
				}
				found.Tags = awsresource.KeptTags(changed)
				return nil
			})
		},
		All: func(ctx context.Context) (map[string]v1alpha1.Tags, error) {
			all, err := r.List(ctx)
			tags := map[string]v1alpha1.Tags{}
			for i := range all {
				tags[all[i].ID] = all[i].Tags
			}
			return tags, err
		},
	}
}

// Marked is an object with some labels and annotations.
func Marked(labels, annotations map[string]string) *v1alpha1.AWSRecord {
	object := &v1alpha1.AWSRecord{}
	object.Labels, object.Annotations = labels, annotations
	return object
}

// RecordsAway turns what the store of records says into an answer. Refusals of a change stay as they are.
func RecordsAway(err error) error {
	var refusal *awsfault.Error
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &refusal):
		return err
	case errors.As(err, &status):
		return Away(err)
	}
	return fmt.Errorf("records of EC2: %w", err)
}

// VPCs are the VPCs that are there, by id.
func (a *EC2) VPCs(ctx context.Context) (map[string]*v1alpha1.VPC, error) {
	var all v1alpha1.VPCList
	if err := a.List(ctx, &all); err != nil {
		return nil, err
	}
	living := map[string]*v1alpha1.VPC{}
	for i := range all.Items {
		if v := &all.Items[i]; !Leaving(v, v.Status.Conditions) {
			living[v.Name] = v
		}
	}
	return living, nil
}

// Derived is the id of what is there without anybody having made it: the same for ever for the same words.
func Derived(kind ec2id.Kind, words string) string {
	sum := sha256.Sum256([]byte(words))
	return kind.New([ec2id.Entropy]byte(sum[:]))
}
