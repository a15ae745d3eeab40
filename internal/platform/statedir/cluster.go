// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Cluster is the directory of one cluster: everything that is the cluster's alone, so that removing it removes nothing
// of another. Its last element is the cluster's namespace in the management plane.
type Cluster string

// Cluster is the directory of the cluster with a namespace.
func (d Dir) Cluster(namespace string) Cluster { return Cluster(d.join("clusters", namespace)) }

// ListClusters lists the directories of clusters by their namespaces, sorted. A directory without a record is listed,
// too: a crash may have come before the record was written, or while the directory was being removed.
func (d Dir) ListClusters() ([]Cluster, error) {
	entries, err := os.ReadDir(d.Clusters())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing directories of clusters: %w", err)
	}
	clusters := make([]Cluster, 0, len(entries))
	for _, entry := range entries {
		if entry.IsDir() {
			clusters = append(clusters, d.Cluster(entry.Name()))
		}
	}
	return clusters, nil
}

// Namespace of the cluster in the management plane.
func (c Cluster) Namespace() string { return filepath.Base(string(c)) }

func (c Cluster) join(parts ...string) string {
	return filepath.Join(append([]string{string(c)}, parts...)...)
}

// Record is what the cluster was last asked to be, with defaults filled in.
func (c Cluster) Record() string { return c.join("cluster.yaml") }

// Deleting is a file that is there from the moment on that the cluster is being removed.
func (c Cluster) Deleting() string { return c.join("deleting") }

// BeingRemoved reports whether the removal of the cluster has begun. From then on the cluster is not run any more,
// whatever is left of it.
func (c Cluster) BeingRemoved() bool {
	_, err := os.Stat(c.Deleting())
	return err == nil
}

// Issuer is the cluster's issuer of service account tokens.
func (c Cluster) Issuer() string { return c.join("issuer.json") }

// Network records the network of the cluster, which was chosen once and is kept: its VPC, subnets, addresses and the
// range of its pods.
func (c Cluster) Network() string { return c.join("network.json") }

// IDs says which users of the host the cluster's components are. It is removed last.
func (c Cluster) IDs() string { return c.join("ids.json") }

// Ports remembers the cluster's ports, which were chosen once and are kept.
func (c Cluster) Ports() string { return c.join("ports.json") }

// PlaneRecord is what the cluster's control plane is made of now, while it changes. It has secrets.
func (c Cluster) PlaneRecord() string { return c.join("plane.json") }

// PKI holds the cluster's certificate authorities and the certificates of its components.
func (c Cluster) PKI() string { return c.join("pki") }

// Etcd is the data of the cluster's etcd.
func (c Cluster) Etcd() string { return c.join("etcd") }

// TokenSigner holds the keys of the cluster's service account tokens. It is the token signer's alone.
func (c Cluster) TokenSigner() string { return c.join("token-signer") }

// TokenKeys is what the token signer last told of its keys, without any that signs.
func (c Cluster) TokenKeys() string { return c.join("token-keys.json") }

// PodWebhook holds what the pod identity webhook was last told. It is the webhook's alone.
func (c Cluster) PodWebhook() string { return c.join("pod-identity-webhook") }

// Component is the folder of one component's files.
func (c Cluster) Component(name string) string { return c.join("components", name) }

// Logs holds a file for each component.
func (c Cluster) Logs() string { return c.join("logs") }

// Log is where a component's standard output and error go.
func (c Cluster) Log(name string) string { return c.join("logs", name+".log") }

// FrontSocket is where the front of the cluster's API servers tells how it is. Like all sockets it is in the directory of
// the account.
func (c Cluster) FrontSocket() string {
	return socketOf(Dir(filepath.Dir(filepath.Dir(string(c)))), "front", c.Namespace())
}

// KarpenterSocket is where Karpenter in the control plane tells how it is.
func (c Cluster) KarpenterSocket() string {
	return socketOf(Dir(filepath.Dir(filepath.Dir(string(c)))), "karpenter", c.Namespace())
}

// KarpenterProxySocket is where Karpenter in the control plane has the host's ports dialled that it needs.
func (c Cluster) KarpenterProxySocket() string {
	return socketOf(Dir(filepath.Dir(filepath.Dir(string(c)))), "karpenter-proxy", c.Namespace())
}

// Audit is the audit log of one instance of the cluster's API server, counted from 0. Its older parts are beside it.
func (c Cluster) Audit(instance int) string {
	return c.join("audit", strconv.Itoa(instance), "audit.log")
}

// Audits is the pattern of the audit logs of all instances.
func (c Cluster) Audits() string { return c.join("audit", "*", "audit.log") }

// SecurityLog holds the lines of that log that matter for security. Its older parts are beside it.
func (c Cluster) SecurityLog(instance int) string {
	return c.join("audit", strconv.Itoa(instance), "security.log")
}

// SecurityLogs is the pattern of those of all instances.
func (c Cluster) SecurityLogs() string { return c.join("audit", "*", "security.log") }

// DeprecatedRequests has who asked the cluster's API servers for deprecated APIs, and how far their audit logs were read.
func (c Cluster) DeprecatedRequests() string { return c.join("deprecated-requests.json") }

// Images is what the cluster's machines see of the images that were loaded.
func (c Cluster) Images() string { return c.join("images") }

// Kubeconfig is the administrator's way into the cluster.
func (c Cluster) Kubeconfig() string { return c.join("kubeconfig.yaml") }
