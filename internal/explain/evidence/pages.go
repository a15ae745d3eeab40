// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// readTime is how long one list of objects may take.
	readTime = 10 * time.Second
	// pageSize is how many objects are asked for at once, as kubectl does: an API server makes a large list as a whole.
	pageSize = 500
)

// read reads a list, page by page. An API server that has forgotten where a list was is asked for all at once.
func read(ctx context.Context, from client.Reader, into client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var all []runtime.Object
	for next := ""; ; {
		page, ok := into.DeepCopyObject().(client.ObjectList)
		if !ok {
			return fmt.Errorf("a copy of %T is no list", into)
		}
		err := from.List(ctx, page, append(slices.Clone(opts), client.Limit(pageSize), client.Continue(next))...)
		if next != "" && apierrors.IsResourceExpired(err) {
			return from.List(ctx, into, opts...)
		}
		if err != nil {
			return err
		}
		items, err := meta.ExtractList(page)
		if err != nil {
			return fmt.Errorf("reading a page of %T: %w", into, err)
		}
		all = append(all, items...)
		if next = page.GetContinue(); next == "" {
			return meta.SetList(into, all)
		}
	}
}
