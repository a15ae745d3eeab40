// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"strconv"
	"strings"
)

var (
	healthPaths           = []string{"/livez", "/readyz", "/healthz"}
	clusterAnonymousPaths = append(healthPaths, "/api/v1/namespaces/kube-public/configmaps/cluster-info")
)

// authentication lets strangers in on the given paths only. Everywhere else a request without credentials is a 401, so a
// careless RBAC rule for system:anonymous opens nothing (KEP-4633).
func authentication(paths []string) string {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous:\n  enabled: true\n  conditions:\n")
	for _, path := range paths {
		fmt.Fprintf(&b, "  - path: %s\n", path)
	}
	return b.String()
}

// encryption keeps Secrets sealed in etcd. identity comes last so that objects from before would still be read.
func encryption(key string) string {
	return `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - name: key1
        secret: ` + key + `
  - identity: {}
`
}

// egress sends what the API server says to kubelets and webhooks through the VPC's door, an HTTP CONNECT proxy on a unix
// socket. etcd is on this host and needs no door.
func egress(socket string) string {
	return `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: ` + strconv.Quote(socket) + `
`
}

// auditPolicy records what tells the story of a join: CSRs whole, nodes coming and going, the first lease, token reviews
// and changes of RBAC; and never the content of a Secret. Heartbeats (node status and lease renewals) are left out: they
// would be most of the log.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: certificates.k8s.io
    resources: [certificatesigningrequests, certificatesigningrequests/approval, certificatesigningrequests/status]
- level: Request
  verbs: [create, delete, deletecollection]
  resources:
  - group: ""
    resources: [nodes]
- level: Metadata
  verbs: [create]
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: Metadata
  resources:
  - group: authentication.k8s.io
    resources: [tokenreviews]
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: rbac.authorization.k8s.io
    resources: ["*"]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: ""
    resources: [secrets]
- level: Metadata
  userGroups: [system:bootstrappers]
- level: None
`
