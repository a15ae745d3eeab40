// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/readcache"
	"muster.dev/muster/internal/platform/watchretry"
)

// Cluster is the service's own way into a cluster.
func Cluster(c component.Config) *rest.Config {
	return connection(c.Places.Published.URL(), c.Authority(authority.Cluster), c.Credential("service"))
}

// Management is the service's own way into the management plane. Reads from memory have what was written by it.
func Management(a component.Account, writes *readcache.Writes) *rest.Config {
	config := connection(a.Places.Management.URL(), a.Authority(authority.Management), a.Credential("management-service"))
	writes.Wrap(config)
	return config
}

// connection reads the files of its credential again when they change.
func connection(server, authority, credential string) *rest.Config {
	config := &rest.Config{
		Host:            server,
		TLSClientConfig: rest.TLSClientConfig{CAFile: authority, CertFile: credential, KeyFile: credential},
		UserAgent:       "muster-service",
		QPS:             -1, // the API servers have priority and fairness; limiting twice only makes joins slow
	}
	watchretry.Wrap(config)
	return config
}
