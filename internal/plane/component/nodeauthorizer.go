// SPDX-License-Identifier: Apache-2.0

package component

import "strconv"

// nodeAuthorizerClient is the credential by which the API server asks the certificate controller about requests of
// nodes. Its authority is that of the programs that speak for users: nobody gets a certificate of it by a CSR.
const nodeAuthorizerClient = "node-authorizer-client"

// authorization is what EKS has, Node and RBAC, behind a webhook that refuses client certificates of machines that are
// gone (package nodeauthorizer). It is asked about nodes with a certificate alone, each time: an answer that the API
// server remembers nobody can take back. While the certificate controller is away such requests are denied, as those
// with a token are while the authenticator is; kubelets try again.
func authorization(c Config, name string) ([]File, error) {
	path := c.file(name, "node-authorizer.kubeconfig")
	webhook, err := kubeconfig(path, c.Places.CertificateControllerAuthorization.URL()+"/authorize", c.Authority("cluster"), c.Credential(nodeAuthorizerClient))
	if err != nil {
		return nil, err
	}
	return []File{webhook, {Path: c.file(name, "authorization.yaml"), Mode: modePrivate, Content: `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: node-certificates
  webhook:
    timeout: 5s
    authorizedTTL: 1s
    cacheAuthorizedRequests: false
    unauthorizedTTL: 1s
    cacheUnauthorizedRequests: false
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo:
      type: KubeConfigFile
      kubeConfigFile: ` + strconv.Quote(path) + `
    matchConditions:
    - expression: request.user.startsWith('system:node:')
    - expression: "'authentication.kubernetes.io/credential-id' in request.extra"
- type: Node
  name: node
- type: RBAC
  name: rbac
`}}, nil
}
