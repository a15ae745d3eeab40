// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
	"path/filepath"
)

// firstInstance is the one API server of a cluster. Each instance has an audit file of its own, since two processes cannot share one.
const firstInstance = 0

// apiServer is the cluster's kube-apiserver, set up as EKS runs it: Node and RBAC authorization, NodeRestriction, bootstrap
// tokens, and strangers (system:anonymous) let in to health and cluster-info only.
func apiServer(c Config) (Spec, error) {
	endpoint, err := c.Endpoint()
	if err != nil {
		return Spec{}, err
	}
	credential, kubeletClient, frontProxy := c.Credential("kube-apiserver"), c.Credential("kubelet-client"), c.Credential("front-proxy-client")
	webhook := c.file(APIServer, "token-webhook.kubeconfig")
	values := map[string]string{
		"advertise-address":     endpoint.String(),
		"allow-privileged":      "true",
		"api-audiences":         audience,
		"audit-log-maxbackup":   "4",
		"audit-log-maxsize":     "64", // MiB; with the backups at most 320 MiB
		"audit-log-path":        c.Dir.Audit(firstInstance),
		"audit-policy-file":     c.file(APIServer, "audit-policy.yaml"),
		"authentication-config": c.file(APIServer, "authentication.yaml"),
		// The authenticator remembers who made a token, and forgets it the moment that a key or a mapping goes; an answer that the API server
		// remembers nobody can take back. So it remembers nothing of the webhook's answers, neither a yes nor a no. A second cache of
		// its own holds every good token for 10 s, and no flag changes that (pkg/kubeapiserver/options, TokenSuccessCacheTTL).
		"authentication-token-webhook-cache-ttl":   "0s",
		"authentication-token-webhook-config-file": webhook,
		"authentication-token-webhook-version":     "v1",
		"authorization-config":                     c.file(APIServer, "authorization.yaml"),
		"bind-address":                             c.Places.APIServer.Listen.Addr().String(),
		"client-ca-file":                           c.KubeletClientCA(),
		"enable-admission-plugins":                 "NodeRestriction",
		// Webhooks and aggregated APIs are reached at their pods: the VPC routes pods, not cluster addresses.
		"enable-aggregator-routing": "true",
		// It would write the port that it listens on into the endpoints of the Service "kubernetes" (PublicServicePort in pkg/controlplane/instance.go), which is
		// one of the host's: in the VPC it answers at another. The service writes them instead.
		"endpoint-reconciler-type": "none",
		// Bootstrap tokens are Secrets of a type of their own; kubeadm and EKS make nodes join with them.
		"enable-bootstrap-token-auth":        "true",
		"encryption-provider-config":         c.file(APIServer, "encryption.yaml"),
		"kubelet-certificate-authority":      c.KubeletServingCA(),
		"kubelet-client-certificate":         kubeletClient,
		"kubelet-client-key":                 kubeletClient,
		"kubelet-preferred-address-types":    "InternalIP",
		"profiling":                          "false",
		"proxy-client-cert-file":             frontProxy,
		"proxy-client-key-file":              frontProxy,
		"requestheader-allowed-names":        "front-proxy-client",
		"requestheader-client-ca-file":       c.Authority("front-proxy"),
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-username-headers":     "X-Remote-User",
		"secure-port":                        fmt.Sprint(c.Places.APIServer.Listen.Port()),
		"service-account-issuer":             c.Issuer.URL,
		"service-account-jwks-uri":           c.Issuer.Keys,
		// Longer ones are cut to this, and what a pod has for the API server itself is extended to the signer's 90 days: as on EKS.
		"service-account-max-token-expiration": TokenLifetime.String(),
		"service-account-signing-endpoint":     c.State.TokenSocket(c.Dir.Namespace()),
		"service-cluster-ip-range":             c.Cluster.Spec.Network.ServiceCIDR,
		"tls-cert-file":                        credential,
		"tls-min-version":                      "VersionTLS12",
		"tls-private-key-file":                 credential,
	}
	maps.Copy(values, etcdFlags("/registry", c.etcdMembers(), c.Authority(Etcd), c.Credential(clientOf(Etcd))))
	tokens, err := kubeconfig(webhook, c.Places.Authenticator.URL()+"/authenticate", c.Authority("cluster"), c.AuthenticatorClient())
	if err != nil {
		return Spec{}, err
	}
	nodes, err := authorization(c)
	if err != nil {
		return Spec{}, err
	}
	files := []File{
		{Path: c.file(APIServer, "audit-policy.yaml"), Mode: modePrivate, Content: auditPolicy},
		{Path: c.file(APIServer, "authentication.yaml"), Mode: modePrivate, Content: authentication(clusterAnonymousPaths)},
		tokens,
		{Path: c.file(APIServer, "encryption.yaml"), Mode: modePrivate, Content: encryption(c.EncryptionKey), Secret: true},
	}
	files = append(files, nodes...)
	// Users have an API server dial what they like: webhooks, conversions, aggregated APIs. The API server dials none of these from the host's own
	// network. Kubelets and pods live in the VPC, where the host has no address.
	selections := egressSelections{ControlPlane: c.State.ControlPlaneSocket(c.Dir.Namespace()), Cluster: c.State.EgressSocket(c.Dir.Namespace())}
	if !c.VPC {
		selections.Cluster = selections.ControlPlane // where nothing but the account's own ports is reached
	}
	values["egress-selector-config-file"] = c.file(APIServer, "egress.yaml")
	files = append(files, File{Path: c.file(APIServer, "egress.yaml"), Mode: modePrivate, Content: egress(selections)})
	credentials := []string{credential, kubeletClient, frontProxy, c.Credential(clientOf(Etcd)), c.AuthenticatorClient(), c.Credential(nodeAuthorizerClient)}
	if c.VPC {
		webhooks, err := admission(c)
		if err != nil {
			return Spec{}, err
		}
		values["admission-control-config-file"] = webhooks[0].Path
		files, credentials = append(files, webhooks...), append(credentials, c.Credential(podWebhookClient))
	}
	return Spec{
		Name:        APIServer,
		Path:        c.kubernetes("kube-apiserver"),
		Args:        c.kubernetesFlags("kube-apiserver", values),
		Files:       files,
		Address:     c.Places.APIServer.Listen.String(),
		Credentials: sorted(credentials...),
		Directories: []string{filepath.Dir(c.Dir.Audit(firstInstance))},
		View: &View{
			Reads:  sorted(credentials...),
			Public: sorted(c.KubeletClientCA(), c.KubeletServingCA(), c.Authority("front-proxy"), c.Authority("cluster"), c.Authority(Etcd)),
			Adds:   []string{filepath.Dir(c.Dir.Audit(firstInstance))}, Prefix: "audit",
			Connects: sorted(c.State.TokenSocket(c.Dir.Namespace()), selections.ControlPlane, selections.Cluster),
		},
		Memory: c.Cluster.Spec.APIServer.MemoryBytes(c.HostMemory),
		Probe:  &Probe{URL: c.Places.APIServer.URL() + "/readyz", CAFile: c.Authority("cluster")},
		After:  []string{Etcd, TokenSigner, WebhookProxy},
	}, nil
}
