// SPDX-License-Identifier: Apache-2.0

package ec2

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

// records are the records of a noun, and those that are there though nobody made them: the main route table and the default network ACL of each VPC.
// Such a one is kept from the first change on.
type records[T any] struct {
	api  *api
	kind ec2id.Kind
	of   awsrecord.Kind[T]
	// vpc is the VPC that a record goes with, nil for what can be without one.
	vpc func(*T) string
	// implied returns the records that exist without a request, such as those that come with a VPC, whether they are stored already or not. It is nil
	// for nouns without such records.
	implied func(context.Context) ([]awsrecord.Record[T], error)
}

// record is one of them.
type record[T any] = awsrecord.Record[T]

// list are all records whose VPC is there.
func (r records[T]) list(ctx context.Context) ([]record[T], error) {
	all, err := r.of.List(ctx, r.api.Management)
	if err != nil {
		return nil, recordsAway(err)
	}
	if r.vpc != nil {
		living, err := r.api.vpcs(ctx)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(one record[T]) bool { return living[r.vpc(&one.Data)] == nil })
	}
	if r.implied != nil {
		implied, err := r.implied(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range implied {
			if !slices.ContainsFunc(all, func(kept record[T]) bool { return kept.ID == one.ID }) {
				all = append(all, one)
			}
		}
	}
	return all, nil
}

// get reads one. The error says that the id is malformed, or that nothing has it.
func (r records[T]) get(ctx context.Context, id string) (*record[T], error) {
	if err := r.kind.Check(id); err != nil {
		return nil, err
	}
	all, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(one record[T]) bool { return one.ID == id })
	if i < 0 {
		return nil, r.kind.NotFound(id)
	}
	return &all[i], nil
}

// hold reads a record that goes with a VPC, and holds the lock of that VPC until release is called.
func (r records[T]) hold(ctx context.Context, id string) (found *record[T], release func(), err error) {
	if found, err = r.get(ctx, id); err != nil {
		return nil, nil, err
	}
	release = r.api.locks.Hold(r.vpc(&found.Data))
	if found, err = r.get(ctx, id); err != nil {
		release()
		return nil, nil, err
	}
	return found, release, nil
}

// create makes one with a new id and tags.
func (r records[T]) create(ctx context.Context, data T, tags map[string]string, t awsresource.Token) (*record[T], error) {
	if t.Key.Token != "" {
		all, err := r.list(ctx)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if made, err := t.Made(marked(all[i].Labels, all[i].Annotations)); made || err != nil {
				return &all[i], err
			}
		}
	}
	made := &record[T]{ID: newID(r.kind), Data: data, Tags: awsresource.KeptTags(tags)}
	object := marked(nil, nil)
	t.Mark(object)
	made.Labels, made.Annotations = object.Labels, object.Annotations
	if err := r.of.Create(ctx, r.api.Management, made); err != nil {
		return nil, recordsAway(err)
	}
	return made, nil
}

// update changes one.
func (r records[T]) update(ctx context.Context, id string, change func(*record[T]) error) error {
	for {
		found, err := r.get(ctx, id)
		if err != nil {
			return err
		}
		_, err = r.of.Update(ctx, r.api.Management, id, change)
		if !apierrors.IsNotFound(err) {
			return recordsAway(err)
		}
		if r.implied == nil {
			return r.kind.NotFound(id)
		}
		if err := change(found); err != nil {
			return err
		}
		if err := r.of.Create(ctx, r.api.Management, found); !apierrors.IsAlreadyExists(err) {
			return recordsAway(err)
		}
	}
}

// remove deletes one, which may be gone.
func (r records[T]) remove(ctx context.Context, id string) error {
	if err := r.of.Delete(ctx, r.api.Management, id); err != nil && !apierrors.IsNotFound(err) {
		return recordsAway(err)
	}
	return nil
}

// sweep removes those whose VPC is gone.
func (r records[T]) sweep(ctx context.Context, living map[string]bool) error {
	all, err := r.of.List(ctx, r.api.Management)
	if err != nil {
		return recordsAway(err)
	}
	for i := range all {
		if !living[r.vpc(&all[i].Data)] {
			if err := r.remove(ctx, all[i].ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// tagger is that of the noun. Conditions are those of the resource's type.
func (r records[T]) tagger(resource string, conditions func(*awsfront.Call, *record[T]) map[string][]string) tagger {
	return tagger{
		kind: r.kind, resource: resource,
		about: func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
			found, err := r.get(ctx, id)
			if err != nil {
				return awsfront.Target{}, err
			}
			return r.api.target(call, resource, id, found.Tags, conditions(call, found)), nil
		},
		change: func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error {
			return r.update(ctx, id, func(found *record[T]) error {
				changed, err := change(awsresource.PlainTags(found.Tags))
				if err != nil {
					return err
				}
				found.Tags = awsresource.KeptTags(changed)
				return nil
			})
		},
		all: func(ctx context.Context) (map[string]v1alpha1.Tags, error) {
			all, err := r.list(ctx)
			tags := map[string]v1alpha1.Tags{}
			for i := range all {
				tags[all[i].ID] = all[i].Tags
			}
			return tags, err
		},
	}
}

// marked is an object with some labels and annotations.
func marked(labels, annotations map[string]string) *v1alpha1.AWSRecord {
	object := &v1alpha1.AWSRecord{}
	object.Labels, object.Annotations = labels, annotations
	return object
}

// recordsAway turns what the store of records says into an answer. Refusals of a change stay as they are.
func recordsAway(err error) error {
	var refusal *awsfault.Error
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &refusal):
		return err
	case errors.As(err, &status):
		return away(err)
	}
	return fmt.Errorf("records of EC2: %w", err)
}

// vpcs are the VPCs that are there, by id.
func (a *api) vpcs(ctx context.Context) (map[string]*v1alpha1.VPC, error) {
	var all v1alpha1.VPCList
	if err := a.list(ctx, &all); err != nil {
		return nil, err
	}
	living := map[string]*v1alpha1.VPC{}
	for i := range all.Items {
		if v := &all.Items[i]; !leaving(v, v.Status.Conditions) {
			living[v.Name] = v
		}
	}
	return living, nil
}

// derived is the id of what is there without anybody having made it: the same for ever for the same words.
func derived(kind ec2id.Kind, words string) string {
	sum := sha256.Sum256([]byte(words))
	return kind.New([ec2id.Entropy]byte(sum[:]))
}
