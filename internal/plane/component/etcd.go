// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdQuota is how large the etcd of a cluster may become, in bytes: 5,000 machines with their leases and Events come near
// the default of 2 GiB.
const EtcdQuota int64 = 4 << 30

// EtcdPause is how long an etcd may answer nobody while it is compacted or defragmented.
const EtcdPause = 5 * time.Minute

// store is the etcd of one plane. Each has a process, a data directory, an authority and a quota of its own, so that a
// plane can be restored, upgraded or lost without the other one, and no plane's certificate opens another plane's etcd.
type store struct {
	name                         string // of the process
	program                      string
	data                         string
	client, peer                 Place
	quota                        string
	authority, credential, probe string // files
}

// etcd keeps the state of a cluster.
func etcd(c Config) (Spec, error) {
	own := store{
		name: Etcd, program: c.program("etcd"), data: c.Dir.Etcd(), client: c.Places.Etcd, peer: c.Places.EtcdPeer,
		quota:     strconv.FormatInt(EtcdQuota, 10),
		authority: c.Authority(Etcd), credential: c.Credential(Etcd), probe: c.Credential(probeOf(Etcd)),
	}
	spec := own.spec()
	spec.View = &View{Reads: []string{own.credential}, Public: []string{own.authority}, Writes: []string{own.data}}
	return spec, nil
}

// managementEtcd keeps the state of the management plane, IAM included.
func managementEtcd(a Account) Spec {
	return store{
		name: ManagementEtcd, program: a.program("etcd"), data: a.State.ManagementEtcd(), client: a.Places.ManagementEtcd, peer: a.Places.ManagementEtcdPeer,
		quota:     "2147483648", // etcd's default
		authority: a.Authority(ManagementEtcd), credential: a.Credential(ManagementEtcd), probe: a.Credential(probeOf(ManagementEtcd)),
	}.spec()
}

// spec is the process of a store. Clients and peers must show a certificate of the store's own authority; nothing else
// is asked of them, so only the plane's API server and the probe have one.
func (s store) spec() Spec {
	return Spec{
		Name: s.name,
		Path: s.program,
		Args: flags(map[string]string{
			"advertise-client-urls":       s.client.URL(),
			"cert-file":                   s.credential,
			"client-cert-auth":            "true",
			"data-dir":                    s.data,
			"initial-advertise-peer-urls": s.peer.URL(),
			"initial-cluster":             "muster=" + s.peer.URL(),
			"key-file":                    s.credential,
			"listen-client-urls":          "https://" + s.client.Listen.String(),
			"listen-peer-urls":            "https://" + s.peer.Listen.String(),
			"name":                        "muster",
			"peer-cert-file":              s.credential,
			"peer-client-cert-auth":       "true",
			"peer-key-file":               s.credential,
			"peer-trusted-ca-file":        s.authority,
			"quota-backend-bytes":         s.quota,
			"tls-min-version":             "TLS1.2",
			"trusted-ca-file":             s.authority,
		}),
		Directories: []string{s.data},
		Address:     s.client.Listen.String(),
		Credentials: sorted(s.credential, s.probe),
		Probe:       &Probe{URL: s.client.URL() + "/readyz", CAFile: s.authority, CredentialFile: s.probe},
		Pause:       metav1.Duration{Duration: EtcdPause},
	}
}

// clientOf is the name of the certificate with which a plane's API server opens its etcd.
func clientOf(store string) string { return store + "-client" }

// probeOf is the name of the certificate with which the supervisor asks an etcd whether it serves.
func probeOf(store string) string { return store + "-probe" }

// EtcdUpkeep are the file of the authority of a cluster's etcd, that of a certificate which opens it, and the common
// name of the etcd's own certificate, for the upkeep of its space.
func EtcdUpkeep(c Config) (authority, credential, server string) {
	return c.Authority(Etcd), c.Credential(probeOf(Etcd)), Etcd
}

// ManagementEtcdUpkeep are the same of the management plane's etcd.
func ManagementEtcdUpkeep(a Account) (authority, credential, server string) {
	return a.Authority(ManagementEtcd), a.Credential(probeOf(ManagementEtcd)), Etcd
}
