// SPDX-License-Identifier: Apache-2.0

package stateconversion

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/statedir"
)

// Steps are the steps of all releases, the first of which begins at layout 4. Steps are appended, and stay as they are.
func Steps() []Step {
	return []Step{
		{"security groups of clusters' API servers", ofClusters(networkrecord.Convert)},
		{"keys of service account tokens, which are the token signer's", ofClusters(func(dir statedir.Cluster) (func() error, error) {
			return tokenkeys.Convert(component.Config{Dir: dir}, time.Now())
		})},
		{"pod identity associations, which are the pod identity webhook's", ofClusters(func(dir statedir.Cluster) (func() error, error) {
			return podidentity.Convert(component.Config{Dir: dir})
		})},
		// The service makes the front when it starts. An earlier Muster would start an API server at the front's address.
		{"front of the management plane", func(statedir.Dir) (func() error, error) { return nil, nil }},
	}
}

// ofClusters converts something of each cluster. A cluster without a record is not asked for yet, or is being removed.
func ofClusters(find func(statedir.Cluster) (func() error, error)) func(statedir.Dir) (func() error, error) {
	return func(dir statedir.Dir) (func() error, error) {
		clusters, err := dir.ListClusters()
		if err != nil {
			return nil, err
		}
		var all []func() error
		var problems []string
		for _, cluster := range clusters {
			_, err := os.Stat(cluster.Record())
			if errors.Is(err, fs.ErrNotExist) || cluster.BeingRemoved() {
				continue
			}
			var convert func() error
			if err == nil {
				convert, err = find(cluster)
			}
			if err != nil {
				problems = append(problems, fmt.Sprintf("cluster %s: %v", cluster.Namespace(), err))
			}
			if convert != nil {
				all = append(all, convert)
			}
		}
		if len(problems) > 0 {
			return nil, errors.New(strings.Join(problems, "; "))
		}
		if len(all) == 0 {
			return nil, nil
		}
		return func() error {
			for _, convert := range all {
				if err := convert(); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
}
