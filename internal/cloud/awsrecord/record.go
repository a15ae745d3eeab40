// SPDX-License-Identifier: Apache-2.0

package awsrecord

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// hashed is how many digits of a hash are in the name of an object.
const hashed = 40

// Kind is a kind of records, whose data is a T.
type Kind[T any] struct {
	// Type is spec.type, such as "internet-gateway".
	Type string
}

// Record is one record.
type Record[T any] struct {
	// ID is the object's name: the id, or what [Kind.NameOf] makes of a name.
	ID string
	// Name is what AWS calls the resource, if it is not the id.
	Name string
	Tags v1alpha1.Tags
	Data T
	// Labels and Annotations are those of the object, for the marks of client tokens.
	Labels, Annotations map[string]string
	// Created is when it was made; it is not written.
	Created time.Time
}

// NameOf is the name of the object of a resource whose name cannot be one: with a slash, capitals, or of any length.
// Different names have different objects.
func (k Kind[T]) NameOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return k.Type + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// Create makes a record. The error is such that apierrors.IsAlreadyExists is true if there is one of its ID.
func (k Kind[T]) Create(ctx context.Context, api client.Client, r *Record[T]) error {
	object := &v1alpha1.AWSRecord{}
	object.Name, object.Spec.Type, object.Spec.Name = r.ID, k.Type, r.Name
	if err := k.write(r, object); err != nil {
		return err
	}
	if err := api.Create(ctx, object); err != nil {
		return fmt.Errorf("making the record %s: %w", r.ID, err)
	}
	r.Created = object.CreationTimestamp.Time
	return nil
}

// Get reads a record by its ID.
func (k Kind[T]) Get(ctx context.Context, api client.Client, id string) (*Record[T], error) {
	r, _, err := k.read(ctx, api, id)
	return r, err
}

// List reads all records of the kind.
func (k Kind[T]) List(ctx context.Context, api client.Reader, options ...client.ListOption) ([]Record[T], error) {
	var all v1alpha1.AWSRecordList
	if err := api.List(ctx, &all, options...); err != nil {
		return nil, fmt.Errorf("listing records: %w", err)
	}
	var records []Record[T]
	var errs []error
	for i := range all.Items {
		if all.Items[i].Spec.Type != k.Type {
			continue
		}
		r, err := k.decode(&all.Items[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		records = append(records, *r)
	}
	return records, errors.Join(errs...)
}

// Update changes a record: its tags, data, labels and annotations. An error of change leaves it as it is, and is
// returned. The function is called again if somebody else changed the record meanwhile.
func (k Kind[T]) Update(ctx context.Context, api client.Client, id string, change func(*Record[T]) error) (*Record[T], error) {
	for {
		r, object, err := k.read(ctx, api, id)
		if err != nil {
			return nil, err
		}
		if err := change(r); err != nil {
			return nil, err
		}
		if err := k.write(r, object); err != nil {
			return nil, err
		}
		err = api.Update(ctx, object)
		if err == nil {
			return r, nil
		}
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return nil, fmt.Errorf("changing the record %s: %w", id, err)
		}
	}
}

// Delete deletes a record.
func (k Kind[T]) Delete(ctx context.Context, api client.Client, id string) error {
	_, object, err := k.read(ctx, api, id)
	if err != nil {
		return err
	}
	if err := api.Delete(ctx, object, client.Preconditions{UID: &object.UID}); err != nil {
		return fmt.Errorf("deleting the record %s: %w", id, err)
	}
	return nil
}

func (k Kind[T]) read(ctx context.Context, api client.Client, id string) (*Record[T], *v1alpha1.AWSRecord, error) {
	object := &v1alpha1.AWSRecord{}
	if err := api.Get(ctx, client.ObjectKey{Name: id}, object); err != nil {
		return nil, nil, fmt.Errorf("reading the record %s: %w", id, err)
	}
	if object.Spec.Type != k.Type {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: k.Type}, id)
	}
	r, err := k.decode(object)
	return r, object, err
}

// write puts a record into its object.
func (k Kind[T]) write(r *Record[T], object *v1alpha1.AWSRecord) error {
	raw, err := json.Marshal(r.Data)
	if err != nil {
		return fmt.Errorf("writing the record %s: %w", r.ID, err)
	}
	object.Spec.Tags, object.Spec.Data = r.Tags, runtime.RawExtension{Raw: raw}
	object.Labels, object.Annotations = r.Labels, r.Annotations
	return nil
}

func (k Kind[T]) decode(object *v1alpha1.AWSRecord) (*Record[T], error) {
	r := &Record[T]{
		ID: object.Name, Name: object.Spec.Name, Tags: object.Spec.Tags, Created: object.CreationTimestamp.Time,
		Labels: object.Labels, Annotations: object.Annotations,
	}
	decoder := json.NewDecoder(bytes.NewReader(object.Spec.Data.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r.Data); err != nil {
		return nil, fmt.Errorf("the record %s: spec.data is no %s: %w", object.Name, k.Type, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the record %s: spec.data has more than one value", object.Name)
	}
	return r, nil
}
