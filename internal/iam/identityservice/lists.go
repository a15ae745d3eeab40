// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/iam/iam"
)

// pageOf is one page of the items whose path begins as asked for. at gives an item's path and name, and names differ.
func pageOf[T any](c *call, items []T, in listIn, at func(T) (path, name string)) ([]T, listPage, error) {
	if in.PathPrefix != nil {
		if err := iam.CheckPathPrefix(*in.PathPrefix); err != nil {
			return nil, listPage{}, err
		}
		items = slices.DeleteFunc(slices.Clone(items), func(item T) bool {
			path, _ := at(item)
			return !strings.HasPrefix(path, *in.PathPrefix)
		})
	}
	return pageBy(items, func(item T) string { _, name := at(item); return name }, c.markers, in.Marker, in.MaxItems)
}

// listedPath is the path that a list is about.
func listedPath(in listIn) string {
	if in.PathPrefix == nil || iam.CheckPathPrefix(*in.PathPrefix) != nil { // which the action refuses
		return "/"
	}
	return *in.PathPrefix
}

// as is the target as IAM's refusals name it: role web, and not the ARN.
func (t target) as(noun, name string) target {
	t.shown = noun + " " + name
	return t
}

func pathOr(path *string) string {
	if path == nil || *path == "" {
		return "/"
	}
	return *path
}

// moment is a time as it is kept: in whole seconds.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
