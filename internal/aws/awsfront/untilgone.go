// SPDX-License-Identifier: Apache-2.0

package awsfront

import "context"

type clientKey struct{}

// UntilGone returns a context that also ends when the client of a request goes away. It is for an action that waits before
// it changes anything; the context of a request itself outlives its client, so that no change is left half done.
func UntilGone(ctx context.Context) (context.Context, context.CancelFunc) {
	waits, cancel := context.WithCancel(ctx)
	client, ok := ctx.Value(clientKey{}).(context.Context)
	if !ok {
		return waits, cancel
	}
	stop := context.AfterFunc(client, cancel)
	return waits, func() { stop(); cancel() }
}
