// SPDX-License-Identifier: Apache-2.0

package component

// store is the etcd of one plane. Each has a process, a data directory, an authority and a quota of its own, so that a plane can be restored,
// upgraded or lost without the other one, and no plane's certificate opens another plane's etcd.
type store struct {
	name         string // of the process, the authority and the certificate
	data         string
	client, peer int // ports
	quota        string
}

// etcd keeps the state of the cluster.
func etcd(c Config) (Spec, error) {
	return c.etcd(store{
		name: Etcd, data: c.State.Etcd(), client: c.Ports.Etcd, peer: c.Ports.EtcdPeer,
		quota: "4294967296", // 4 GiB: 5,000 machines with their leases and Events come near the default of 2 GiB
	}), nil
}

// managementEtcd keeps the state of the management plane, IAM included.
func managementEtcd(c Config) (Spec, error) {
	return c.etcd(store{
		name: ManagementEtcd, data: c.State.ManagementEtcd(), client: c.Ports.ManagementEtcd, peer: c.Ports.ManagementEtcdPeer,
		quota: "2147483648", // etcd's default
	}), nil
}

// etcd is the process of a store. Clients and peers must show a certificate of the store's own authority; nothing else is asked of them, so
// only the plane's API server and the probe have one.
func (c Config) etcd(s store) Spec {
	client, peer := url(s.client), url(s.peer)
	credential, authority := c.Credential(s.name), c.Authority(s.name)
	return Spec{
		Name: s.name,
		Path: c.program("etcd"),
		Args: flags(map[string]string{
			"advertise-client-urls":       client,
			"cert-file":                   credential,
			"client-cert-auth":            "true",
			"data-dir":                    s.data,
			"initial-advertise-peer-urls": peer,
			"initial-cluster":             "muster=" + peer,
			"key-file":                    credential,
			"listen-client-urls":          client,
			"listen-peer-urls":            peer,
			"name":                        "muster",
			"peer-cert-file":              credential,
			"peer-client-cert-auth":       "true",
			"peer-key-file":               credential,
			"peer-trusted-ca-file":        authority,
			"quota-backend-bytes":         s.quota,
			"tls-min-version":             "TLS1.2",
			"trusted-ca-file":             authority,
		}),
		Directories: []string{s.data},
		Probe:       &Probe{URL: client + "/readyz", CAFile: authority, CredentialFile: c.Credential(probeOf(s.name))},
	}
}

// clientOf is the name of the certificate with which a plane's API server opens its etcd.
func clientOf(store string) string { return store + "-client" }

// probeOf is the name of the certificate with which the supervisor asks an etcd whether it serves.
func probeOf(store string) string { return store + "-probe" }
