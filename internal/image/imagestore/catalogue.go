// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/node/loadedimages"
)

// Entry is an image under a name.
type Entry struct {
	loadedimages.Image
	// Namespaces of the clusters that have it; empty for all, also those that come later.
	Namespaces []string  `json:"namespaces,omitempty"`
	Loaded     time.Time `json:"loaded"`
}

// catalogue says which image a name is.
type catalogue struct {
	Entries []Entry `json:"entries"`
}

// put adds an image, in place of those of its name in the same clusters.
func (c catalogue) put(entry Entry) catalogue {
	var kept []Entry
	for _, e := range c.Entries {
		if e.Name == entry.Name {
			if len(entry.Namespaces) == 0 {
				continue
			}
			if len(e.Namespaces) > 0 {
				e.Namespaces = without(e.Namespaces, entry.Namespaces)
				if len(e.Namespaces) == 0 {
					continue
				}
			}
		}
		kept = append(kept, e)
	}
	kept = append(kept, entry)
	slices.SortStableFunc(kept, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return catalogue{kept}
}

// remove takes a name away: everywhere, or from some clusters. An image that all clusters have cannot be taken from
// some.
func (c catalogue) remove(name string, namespaces []string) (catalogue, error) {
	var kept []Entry
	found := false
	for _, e := range c.Entries {
		switch {
		case e.Name != name:
		case len(namespaces) == 0:
			found = true
			continue
		case len(e.Namespaces) == 0:
			return c, fmt.Errorf("image %s is loaded for all clusters: remove it without --cluster, and load it for those that are to keep it", name)
		default:
			left := without(e.Namespaces, namespaces)
			found = found || len(left) < len(e.Namespaces)
			e.Namespaces = left
			if len(left) == 0 {
				continue
			}
		}
		kept = append(kept, e)
	}
	if !found {
		return c, &NotFoundError{name}
	}
	return catalogue{kept}, nil
}

// of returns the images of one cluster. An image that was loaded for this cluster wins over an image of the same name
// for all clusters.
func (c catalogue) of(namespace string) loadedimages.Index {
	chosen := map[string]loadedimages.Image{}
	for _, own := range []bool{false, true} {
		for _, e := range c.Entries {
			if own == (len(e.Namespaces) > 0) && (!own || slices.Contains(e.Namespaces, namespace)) {
				chosen[e.Name] = e.Image
			}
		}
	}
	index := loadedimages.Index{Images: make([]loadedimages.Image, 0, len(chosen))}
	for _, image := range chosen {
		index.Images = append(index.Images, image)
	}
	slices.SortFunc(index.Images, func(a, b loadedimages.Image) int { return strings.Compare(a.Name, b.Name) })
	return index
}

// NotFoundError is a name that no image has.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("image %s is not loaded; `muster image ls` lists those that are", e.Name)
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(some, one) })
}
