// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// APIServers is how many API servers of a cluster can run at a time: those that serve, and another that takes the place
// of one. Each is in a slot, counted from 0, which gives it a port, a folder and an audit log of its own; all are the
// same user.
const APIServers = v1alpha1.MaxReplicas + 1

// How an API server ends once it is told to. Its /readyz fails at once, and it serves on for shutdownDelay, in which the
// front learns that new connections go elsewhere. Then requests on connections that are open are answered 429 with
// Retry-After, the connection closes, and watches end one after the other within watchGrace. Requests that are being
// answered have a minute (pkg/server/config.go, RequestTimeout), and lastGrace is what is left for everything else.
const (
	shutdownDelay = time.Second
	watchGrace    = 10 * time.Second
	lastGrace     = 10 * time.Second
	requestGrace  = time.Minute
	serverGrace   = shutdownDelay + requestGrace + watchGrace + lastGrace
)

// endFlags are the flags of how an API server ends.
func endFlags() map[string]string {
	return map[string]string{
		"shutdown-delay-duration":                 shutdownDelay.String(),
		"shutdown-send-retry-after":               "true",
		"shutdown-watch-termination-grace-period": watchGrace.String(),
	}
}

// APIServerName is the name of the API server in a slot.
func APIServerName(slot int) string { return inSlot(APIServer, slot) }

// inSlot is the name of a server in a slot; in the first one it is that of its kind.
func inSlot(name string, slot int) string {
	if slot == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, slot)
}

// IsAPIServer reports whether a component is an API server of a cluster, in whichever slot.
func IsAPIServer(name string) bool { return slices.Contains(apiServerNames(), name) }

func apiServerNames() []string { return inSlots(APIServer, APIServers) }

// inSlots are the names of servers in all slots.
func inSlots(name string, slots int) []string {
	names := make([]string, slots)
	for slot := range names {
		names[slot] = inSlot(name, slot)
	}
	return names
}

// ServerSlot is the slot of an API server, of a cluster or of the management plane; found is false for other components.
func ServerSlot(name string) (slot int, found bool) {
	slot = max(slices.Index(apiServerNames(), name), slices.Index(managementNames(), name))
	return slot, slot >= 0
}

// APIServerSpec is the spec of the API server in a slot.
func APIServerSpec(c Config, slot int) (Spec, error) {
	spec, err := apiServer(c, slot)
	spec.Cluster, spec.NextArgs = c.Dir.Namespace(), printFlags(c.Cluster.Spec.APIServer.LogLevel)
	return spec, err
}

func firstAPIServer(c Config) (Spec, error) { return APIServerSpec(c, 0) }

// apiServer is the cluster's kube-apiserver in a slot, set up as EKS runs it: Node and RBAC authorization,
// NodeRestriction, bootstrap tokens, and strangers (system:anonymous) let in to health and cluster-info only.
func apiServer(c Config, slot int) (Spec, error) {
	name, place, audit := APIServerName(slot), c.Places.APIServer(slot), c.Dir.Audit(slot)
	endpoint, err := c.Endpoint()
	if err != nil {
		return Spec{}, err
	}
	credential, kubeletClient, frontProxy := c.Credential("kube-apiserver"), c.Credential("kubelet-client"), c.Credential("front-proxy-client")
	webhook := c.file(name, "token-webhook.kubeconfig")
	values := map[string]string{
		"advertise-address":     endpoint.String(),
		"allow-privileged":      "true",
		"api-audiences":         audience,
		"audit-log-maxbackup":   "4",
		"audit-log-maxsize":     "64", // MiB; with the backups at most 320 MiB
		"audit-log-path":        audit,
		"audit-policy-file":     c.file(name, "audit-policy.yaml"),
		"authentication-config": c.file(name, "authentication.yaml"),
		// The authenticator remembers who made a token, and forgets it the moment that a key or a mapping goes; an answer that the API server
		// remembers nobody can take back. So it remembers nothing of the webhook's answers, neither a yes nor a no. A second cache of
		// its own holds every good token for 10 s, and no flag changes that (pkg/kubeapiserver/options, TokenSuccessCacheTTL).
		"authentication-token-webhook-cache-ttl":   "0s",
		"authentication-token-webhook-config-file": webhook,
		"authentication-token-webhook-version":     "v1",
		"authorization-config":                     c.file(name, "authorization.yaml"),
		"bind-address":                             place.Listen.Addr().String(),
		"client-ca-file":                           c.KubeletClientCA(),
		"enable-admission-plugins":                 "NodeRestriction",
		// Webhooks and aggregated APIs are reached at their pods: the VPC routes pods, not cluster addresses.
		"enable-aggregator-routing": "true",
		// It would write the port that it listens on into the endpoints of the Service "kubernetes" (PublicServicePort in pkg/controlplane/instance.go), which is
		// one of the host's: in the VPC it answers at another. The service writes them instead.
		"endpoint-reconciler-type": "none",
		// Bootstrap tokens are Secrets of a type of their own; kubeadm and EKS make nodes join with them.
		"enable-bootstrap-token-auth":        "true",
		"encryption-provider-config":         c.file(name, "encryption.yaml"),
		"kubelet-certificate-authority":      c.KubeletServingCA(),
		"kubelet-client-certificate":         kubeletClient,
		"kubelet-client-key":                 kubeletClient,
		"kubelet-preferred-address-types":    "InternalIP",
		"profiling":                          "false",
		"proxy-client-cert-file":             frontProxy,
		"proxy-client-key-file":              frontProxy,
		"requestheader-allowed-names":        UserFrontProxy,
		"requestheader-client-ca-file":       c.Authority("front-proxy"),
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-username-headers":     "X-Remote-User",
		"secure-port":                        fmt.Sprint(place.Listen.Port()),
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
	maps.Copy(values, apiServerSettings(c))
	maps.Copy(values, etcdFlags("/registry", c.etcdMembers(), c.Authority(Etcd), c.Credential(clientOf(Etcd))))
	tokens, err := kubeconfig(webhook, c.Places.Authenticator.URL()+"/authenticate", c.Authority("cluster"), c.AuthenticatorClient())
	if err != nil {
		return Spec{}, err
	}
	nodes, err := authorization(c, name)
	if err != nil {
		return Spec{}, err
	}
	files := []File{
		{Path: c.file(name, "audit-policy.yaml"), Mode: modePrivate, Content: auditPolicy},
		{Path: c.file(name, "authentication.yaml"), Mode: modePrivate, Content: authentication(clusterAnonymousPaths)},
		tokens,
		{Path: c.file(name, "encryption.yaml"), Mode: modePrivate, Content: encryption(c.EncryptionKey), Secret: true},
	}
	files = append(files, nodes...)
	dialled := selections(c)
	values["egress-selector-config-file"] = c.file(name, "egress.yaml")
	files = append(files, File{Path: c.file(name, "egress.yaml"), Mode: modePrivate, Content: egress(dialled)})
	credentials := []string{credential, kubeletClient, frontProxy, c.Credential(clientOf(Etcd)), c.AuthenticatorClient(), c.Credential(nodeAuthorizerClient)}
	if c.VPC {
		webhooks, err := admission(c, name)
		if err != nil {
			return Spec{}, err
		}
		values["admission-control-config-file"] = webhooks[0].Path
		files, credentials = append(files, webhooks...), append(credentials, c.Credential(podWebhookClient))
	}
	return Spec{
		Name:        name,
		Path:        c.kubernetes("kube-apiserver"),
		Args:        c.kubernetesFlags("kube-apiserver", values),
		Files:       files,
		Address:     place.Listen.String(),
		Credentials: sorted(credentials...),
		Directories: []string{filepath.Dir(audit)},
		View: &View{
			Reads:  sorted(credentials...),
			Public: sorted(c.KubeletClientCA(), c.KubeletServingCA(), c.Authority("front-proxy"), c.Authority("cluster"), c.Authority(Etcd)),
			Adds:   []string{filepath.Dir(audit)}, Prefix: "audit",
			Connects: sorted(c.State.TokenSocket(c.Dir.Namespace()), dialled.ControlPlane, dialled.Cluster),
		},
		Memory: c.Cluster.Spec.APIServer.MemoryBytes(c.HostMemory),
		Grace:  metav1.Duration{Duration: serverGrace},
		Probe:  &Probe{URL: place.URL() + "/readyz", CAFile: c.Authority("cluster")},
		After:  []string{Etcd, TokenSigner, WebhookProxy},
	}, nil
}
