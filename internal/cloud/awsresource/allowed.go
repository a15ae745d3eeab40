// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
)

// allowed is a client that asks before it writes.
type allowed struct{ client.Client }

// Allowed has a client write only what the sender of the context's request may still do, see [awsfront.StillAllowed].
// Actions have their locks when they write, and so nothing is done by rights that were taken from its sender meanwhile.
func Allowed(c client.Client) client.Client { return allowed{c} }

// Create implements [client.Writer].
func (a allowed) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if err := awsfront.StillAllowed(ctx); err != nil {
		return err
	}
	return a.Client.Create(ctx, object, options...)
}

// Delete implements [client.Writer].
func (a allowed) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := awsfront.StillAllowed(ctx); err != nil {
		return err
	}
	return a.Client.Delete(ctx, object, options...)
}

// Update implements [client.Writer].
func (a allowed) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if err := awsfront.StillAllowed(ctx); err != nil {
		return err
	}
	return a.Client.Update(ctx, object, options...)
}

// Patch implements [client.Writer].
func (a allowed) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := awsfront.StillAllowed(ctx); err != nil {
		return err
	}
	return a.Client.Patch(ctx, object, patch, options...)
}

// Apply implements [client.Writer].
func (a allowed) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if err := awsfront.StillAllowed(ctx); err != nil {
		return err
	}
	return a.Client.Apply(ctx, object, options...)
}

// DeleteAllOf implements [client.Writer].
func (a allowed) DeleteAllOf(ctx context.Context, object client.Object, options ...client.DeleteAllOfOption) error {
	if err := awsfront.StillAllowed(ctx); err != nil {
		return err
	}
	return a.Client.DeleteAllOf(ctx, object, options...)
}
