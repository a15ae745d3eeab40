// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects returns all objects of a kind, sorted by name, and the resource version of the list.
func (p *Client) Objects(ctx context.Context, k Kind, opts ...client.ListOption) ([]client.Object, string, error) {
	list := k.List()
	if err := p.ReadAll(ctx, list, opts...); err != nil {
		return nil, "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, "", fmt.Errorf("reading list: %w", err)
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b client.Object) int {
		return cmp.Or(strings.Compare(NameOf(a), NameOf(b)), strings.Compare(a.GetNamespace(), b.GetNamespace()))
	})
	return objects, list.GetResourceVersion(), nil
}

// Changes calls do for every change of a kind until the watch ends.
func (p *Client) Changes(ctx context.Context, list client.ObjectList, do func(client.Object) error, opts ...client.ListOption) error {
	watching, err := p.Watch(ctx, list, opts...)
	if err != nil {
		return p.Explain(err)
	}
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watching.ResultChan():
			if !ok {
				return nil
			}
			if event.Type == watch.Error {
				if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
					return p.Explain(err)
				}
				return nil
			}
			if object, ok := event.Object.(client.Object); ok && event.Type != watch.Bookmark {
				if err := do(object); err != nil {
					return err
				}
			}
		}
	}
}
