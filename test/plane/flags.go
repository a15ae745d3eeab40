// SPDX-License-Identifier: Apache-2.0

package plane

import "path/filepath"

// etcd has upstream's defaults but for TLS, which kubeadm sets up too.
func (p *Plane) etcd(client, peer string) []string {
	own, ca := p.store.Path("etcd"), p.store.AuthorityPath("etcd")
	return []string{
		"--name=plane", "--data-dir=" + filepath.Join(p.dir, "etcd"), "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=plane=" + peer,
		"--cert-file=" + own, "--key-file=" + own, "--trusted-ca-file=" + ca, "--client-cert-auth=true",
		"--peer-cert-file=" + own, "--peer-key-file=" + own, "--peer-trusted-ca-file=" + ca, "--peer-client-cert-auth=true",
	}
}

// apiServer has the flags that kubeadm gives it (cmd/kubeadm/app/phases/controlplane/manifests.go), less those about
// kubelets, aggregation and manifests, which are not here.
func (p *Plane) apiServer(etcd, port string) []string {
	serving, client := p.store.Path("kube-apiserver"), p.store.Path("etcd-client")
	return []string{
		"--advertise-address=127.0.0.1", "--bind-address=127.0.0.1", "--secure-port=" + port,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth=true",
		"--client-ca-file=" + p.CA(), "--tls-cert-file=" + serving, "--tls-private-key-file=" + serving,
		"--etcd-servers=" + etcd, "--etcd-cafile=" + p.store.AuthorityPath("etcd"), "--etcd-certfile=" + client, "--etcd-keyfile=" + client,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.signingKey(), "--service-account-signing-key-file=" + p.signingKey(),
		"--service-cluster-ip-range=10.96.0.0/12",
	}
}

// controllerManager signs with the cluster's one authority, as kubeadm has it. Only one controller manager runs, so it
// needs no election, and nobody sends it requests.
func (p *Plane) controllerManager(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=true",
		"--cluster-signing-cert-file=" + p.CA(), "--cluster-signing-key-file=" + p.CAKey(),
		"--root-ca-file=" + p.CA(), "--service-account-private-key-file=" + p.signingKey(),
		"--service-cluster-ip-range=10.96.0.0/12",
	}
}
