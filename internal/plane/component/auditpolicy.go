// SPDX-License-Identifier: Apache-2.0

package component

// auditPolicy has the API server record each request, but for heartbeats and the control plane's own work. CSRs are
// recorded whole, as EKS records them; changes of RBAC and of Nodes with what was asked for; everything else at
// Metadata, so that neither a Secret nor a token is ever in the log. Package auditlog keeps the lines that matter for
// security in a file of their own, and package joinlog reads the steps of joins.
//
// All that is neither a heartbeat nor the control plane's is recorded because a rule sees neither the answer nor whom a
// user impersonates: the log alone tells which requests were refused.
//
// Requests that fail to authenticate have no user and one stage, ResponseStarted (k8s.io/apiserver,
// pkg/endpoints/filters/authn_audit.go). So a rule that leaves that stage out, or the whole request, must name groups:
// without, it would keep refused logins out of the log.
//
// Watches of Secrets and proxied requests are recorded when they begin, not when they end: a line that is written at
// the end of a watch is missing while it lasts, and for ever if the API server is killed. Of sessions (exec, attach,
// port-forward) both are recorded.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
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
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: rbac.authorization.k8s.io
    resources: ["*"]
- level: Metadata
  verbs: [watch]
  resources:
  - group: ""
    resources: [secrets]
  omitStages: [ResponseComplete]
- level: Metadata
  resources:
  - group: ""
    resources: [nodes/proxy, pods/proxy, services/proxy]
  omitStages: [ResponseComplete]
- level: Metadata
  resources:
  - group: ""
    resources: [secrets, pods/attach, pods/ephemeralcontainers, pods/exec, pods/portforward, serviceaccounts/token]
- level: None
  userGroups: [system:authenticated]
  verbs: [get, update, patch]
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: None
  userGroups: [system:nodes]
  verbs: [update, patch]
  resources:
  - group: ""
    resources: [nodes/status]
- level: None
  users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler, ` + UserService + `]
- level: None
  userGroups: [system:authenticated, system:unauthenticated]
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/version"]
- level: Metadata
  userGroups: [system:authenticated]
  omitStages: [ResponseStarted]
- level: Metadata
`
