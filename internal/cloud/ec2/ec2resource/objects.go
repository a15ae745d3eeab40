// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"
	"crypto/rand"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
)

// The codes of EC2 that are of no one noun.
const (
	InvalidParameter   = "InvalidParameterValue"
	InvalidCombination = "InvalidParameterCombination"
	MissingParameter   = "MissingParameter"
	DependencyViolated = "DependencyViolation"
	NotPermitted       = "OperationNotPermitted"
	incorrectState     = "IncorrectState"
)

// Away turns what the API server says into an answer that clients try again where that helps.
func Away(err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &awsfault.Error{Code: InvalidParameter, Message: err.Error(), Cause: err}
	case apierrors.IsConflict(err):
		return &awsfault.Error{Code: incorrectState, Message: "The resource was changed by somebody else meanwhile: try again", Cause: err}
	}
	return &awsfault.Error{Code: "Unavailable", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// Get reads the object of an id into object. The error says that the id is malformed, or that nothing has it.
func (a *EC2) Get(ctx context.Context, kind ec2id.Kind, id string, object client.Object) error {
	if err := kind.Check(id); err != nil {
		return err
	}
	err := a.Management.Get(ctx, client.ObjectKey{Name: id}, object)
	switch {
	case apierrors.IsNotFound(err):
		return kind.NotFound(id)
	case err != nil:
		return Away(fmt.Errorf("reading %s: %w", id, err))
	}
	if m, ok := object.(*v1alpha1.Machine); ok && m.Spec.Fargate != nil { // as on AWS, where they are not the account's
		return kind.NotFound(id)
	}
	return nil
}

// List reads all objects of a kind.
func (a *EC2) List(ctx context.Context, into client.ObjectList) error {
	if err := a.Management.List(ctx, into); err != nil {
		return Away(fmt.Errorf("listing %T: %w", into, err))
	}
	return nil
}

// Change reads an object, has it changed and writes it, see [awsresource.Change].
func (a *EC2) Change(ctx context.Context, kind ec2id.Kind, id string, object client.Object, change func() error) error {
	defer a.Locks.Hold(id)()
	read := func() (client.Writer, client.Object, error) {
		return a.Management, object, a.Get(ctx, kind, id, object)
	}
	return awsresource.Change(ctx, read, change, func(err error) error {
		if apierrors.IsNotFound(err) {
			return kind.NotFound(id)
		}
		return Away(fmt.Errorf("changing %s: %w", id, err))
	})
}

// NewID makes an id.
func NewID(kind ec2id.Kind) string {
	var random [ec2id.Entropy]byte
	_, _ = rand.Read(random[:]) // never fails
	return kind.New(random)
}
