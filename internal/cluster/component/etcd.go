// SPDX-License-Identifier: Apache-2.0

package component

// etcd keeps the state of both planes, each below a prefix of its own. Clients and peers must show a certificate of
// etcd's own authority; nothing else is asked of them, so only API servers have one.
func etcd(c Config) (Spec, error) {
	client, peer := c.EtcdURL(), url(c.Ports.EtcdPeer)
	credential, authority := c.Credential("etcd"), c.Authority("etcd")
	return Spec{
		Name: Etcd,
		Path: c.program("etcd"),
		Args: flags(map[string]string{
			"advertise-client-urls":       client,
			"cert-file":                   credential,
			"client-cert-auth":            "true",
			"data-dir":                    c.State.Etcd(),
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
			// The default quota of 2 GiB is what 5,000 machines with their leases and events can come near.
			"quota-backend-bytes": "4294967296",
			"tls-min-version":     "TLS1.2",
			"trusted-ca-file":     authority,
		}),
		Directories: []string{c.State.Etcd()},
		Probe:       &Probe{URL: client + "/readyz", CAFile: authority, CredentialFile: c.Credential("etcd-client-probe")},
	}, nil
}
