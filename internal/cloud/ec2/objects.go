// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"crypto/rand"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
)

// The codes of EC2 that are of no one noun.
const (
	invalidParameter   = "InvalidParameterValue"
	invalidCombination = "InvalidParameterCombination"
	missingParameter   = "MissingParameter"
	dependencyViolated = "DependencyViolation"
	notPermitted       = "OperationNotPermitted"
	incorrectState     = "IncorrectState"
)

// away turns what the API server says into an answer that clients try again where that helps.
func away(err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &awsfault.Error{Code: invalidParameter, Message: err.Error(), Cause: err}
	case apierrors.IsConflict(err):
		return &awsfault.Error{Code: incorrectState, Message: "The resource was changed by somebody else meanwhile: try again", Cause: err}
	}
	return &awsfault.Error{Code: "Unavailable", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// get reads the object of an id into object. The error says that the id is malformed, or that nothing has it.
func (a *api) get(ctx context.Context, kind ec2id.Kind, id string, object client.Object) error {
	if err := kind.Check(id); err != nil {
		return err
	}
	err := a.Management.Get(ctx, client.ObjectKey{Name: id}, object)
	switch {
	case apierrors.IsNotFound(err):
		return kind.NotFound(id)
	case err != nil:
		return away(fmt.Errorf("reading %s: %w", id, err))
	}
	return nil
}

// list reads all objects of a kind.
func (a *api) list(ctx context.Context, into client.ObjectList) error {
	if err := a.Management.List(ctx, into); err != nil {
		return away(fmt.Errorf("listing %T: %w", into, err))
	}
	return nil
}

// change reads an object, has it changed and writes it, see [awsresource.Change].
func (a *api) change(ctx context.Context, kind ec2id.Kind, id string, object client.Object, change func() error) error {
	defer a.locks.Hold(id)()
	var refused error // by the reading or the change, whose errors are EC2's already
	err := awsresource.Change(ctx, a.Management, func() (client.Object, error) {
		refused = a.get(ctx, kind, id, object)
		return object, refused
	}, func() error {
		refused = change()
		return refused
	})
	switch {
	case err == nil, refused != nil:
		return err
	case apierrors.IsNotFound(err):
		return kind.NotFound(id)
	}
	return away(fmt.Errorf("changing %s: %w", id, err))
}

// newID makes an id.
func newID(kind ec2id.Kind) string {
	var random [ec2id.Entropy]byte
	_, _ = rand.Read(random[:]) // never fails
	return kind.New(random)
}
