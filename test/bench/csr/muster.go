// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"muster.dev/muster/test/plane"
)

// muster runs the certificate controller with the whole policy, by a static inventory of the fleet.
func muster(ctx context.Context, b *bench, p *plane.Plane) (*plane.Process, error) {
	kubeconfig, err := controllerUser(ctx, p)
	if err != nil {
		return nil, err
	}
	machines, policy := filepath.Join(p.Dir(), "machines.yaml"), filepath.Join(p.Dir(), "policy.yaml")
	if err := os.WriteFile(machines, b.fleet.inventory(), 0o600); err != nil {
		return nil, fmt.Errorf("writing the inventory: %w", err)
	}
	if err := os.WriteFile(policy, fmt.Appendf(nil, policyFile, p.CA(), p.CAKey(), machines), 0o600); err != nil {
		return nil, fmt.Errorf("writing the policy: %w", err)
	}
	return p.Run("muster", b.options.muster, "--kubeconfig="+kubeconfig, "--config="+policy)
}

// Everything that can be on is, as in a cluster that is looked after: leader election and the record of what was
// issued, too.
const policyFile = `apiVersion: certificates.muster.dev/v1alpha1
kind: CertificateControllerConfiguration
mode: approve-and-sign
signers:
- name: kubernetes.io/kube-apiserver-client-kubelet
- name: kubernetes.io/kubelet-serving
keys:
- name: cluster
  file: {certificate: %s, key: %s}
policy:
  reserved: {clusterDomain: cluster.local, names: [kubernetes, localhost], addresses: [10.96.0.0/12, 127.0.0.0/8]}
inventory:
  sources:
  - static: {file: %s}
register: {namespace: kube-system}
pruning: {keep: 2}
leaderElection: {enabled: true, namespace: kube-system, name: muster-certificate-controller}
`

// inventory is the fleet as a static inventory.
func (f *fleet) inventory() []byte {
	var out bytes.Buffer
	out.WriteString("machines:\n")
	for _, m := range f.machines {
		_, _ = fmt.Fprintf(&out, "- {id: %s, nodeName: %s, addresses: [%s]}\n", m.id, m.node, m.address)
	}
	return out.Bytes()
}
