// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"context"
	"sync"
)

// again asks IAM a second time about what a request was allowed.
type again struct {
	once    sync.Once
	ask     func() error
	refused error
}

type againKey struct{}

// StillAllowed asks IAM again about the resources that the request of a context was allowed. It is called before a
// write: the sender may have lost the key or the rights while the request waited for others. IAM is asked before the
// first write only, so that a change is refused as a whole; the request is then answered with the refusal. The context
// of no request, and of one that decides itself who may, is allowed all.
func StillAllowed(ctx context.Context) error {
	a, ok := ctx.Value(againKey{}).(*again)
	if !ok {
		return nil
	}
	a.once.Do(func() { a.refused = a.ask() })
	return a.refused
}

// refusal is what IAM said the second time; nil if it was not asked.
func (a *again) refusal() error {
	a.once.Do(func() {})
	return a.refused
}
