// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/readcache"
)

// NewManagement makes a client of the management plane by a connection to it.
func NewManagement(connection *rest.Config, scheme *runtime.Scheme) (client.WithWatch, error) {
	api, err := client.NewWithWatch(connection, client.Options{Scheme: scheme, Mapper: Mapper()})
	if err != nil {
		return nil, fmt.Errorf("making a client of the management plane: %w", err)
	}
	return api, nil
}

// NewReads makes a client of the management plane that answers reads of described kinds from memory, never older than
// what went by the writes. It answers once it runs.
func NewReads(api client.WithWatch, writes *readcache.Writes) (*readcache.Cache, error) {
	reads, err := readcache.New(readcache.Config{Client: api, Writes: writes, Kinds: described()})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the AWS APIs: %w", err)
	}
	return reads, nil
}

// described are the kinds that actions of the AWS APIs describe from memory.
func described() []readcache.Kind {
	var kinds []readcache.Kind
	for _, kind := range v1alpha1.Kinds() {
		if kind.Described {
			kinds = append(kinds, readcache.Kind{Object: kind.Object, List: kind.List})
		}
	}
	return kinds
}
